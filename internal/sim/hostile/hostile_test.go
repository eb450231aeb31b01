package hostile

import (
	"strings"
	"testing"
)

// TestASquareIsFound tests that Linear fails for quadratic work and passes for linear work.
func TestASquareIsFound(t *testing.T) {
	text := func(size int) string { return strings.Repeat("a", size) }
	count := 0
	square := func(text string) {
		for i := range len(text) / 8 {
			count += strings.Count(text[i*8:], "b")
		}
	}
	line := func(text string) {
		for range 2000 {
			count += strings.Count(text, "b")
		}
	}
	for name, grows := range map[string]bool{"square": true, "line": false} {
		work := map[string]func(string){"square": square, "line": line}[name]
		got, ratio := growth(func() { work(text(small)) }, func() { work(text(factor * small)) })
		if got != grows {
			t.Errorf("%s: %.1f times the work", name, ratio)
		}
	}
}

func TestTextsAreAsLongAsAsked(t *testing.T) {
	for name, text := range All(10_000) {
		if len(text) < 10_000 || len(text) > 21_000 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
}
