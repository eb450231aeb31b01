package lang

import (
	"testing"
	"time"
)

func TestPrinter(t *testing.T) {
	var p Printer
	for _, c := range []struct{ got, want string }{
		{p.Text("common.back"), "‹ Back"},
		{p.Text("common.page", 2, 3), "2 of 3"},
		{p.Text("menu.rules-button", 12345), "Rules (12,345)…"},
		{p.Text("quantity.days", 1), "1 day"},
		{p.Text("quantity.days", 21), "21 days"},
		{p.Text("menu.no-such-model", "50%", "none"), `There is no model "50%". There are: none.`},
		{p.Elapsed(99 * time.Millisecond), "<0.1 s"},
		{p.Elapsed(1440 * time.Millisecond), "1.4 s"},
		{p.Elapsed(59*time.Second + 999*time.Millisecond), "59 s"},
		{p.Elapsed(3*time.Minute + 5*time.Second), "3 min 5 s"},
		{p.Elapsed(2*time.Hour + 10*time.Minute), "2 h 10 min"},
		{p.Rounded(-time.Second), "0 s"},
		{p.Rounded(12*time.Minute + 59*time.Second), "12 min"},
		{p.Rounded(47 * time.Hour), "47 h 0 min"},
		{p.Rounded(96 * time.Hour), "4 days"},
		{p.Span(90 * time.Minute), "1 h 30 min"},
		{p.Span(time.Hour + 5*time.Second), "1 h 5 s"},
		{p.List("a", "b", "c"), "a, b, c"},
		{Language("zh").Printer().List("a", "b", "c"), "a、b、c"},
		{Language("zh").Printer().List(), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
