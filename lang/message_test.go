package lang

import (
	"testing"
	"time"
)

func TestMessage(t *testing.T) {
	for _, tc := range []struct {
		m    Message
		want string
	}{
		{Message{}, ""},
		{Words(""), ""},
		{Words("50% of it"), "50% of it"},
		{NewMessage("failure.empty"), "the message is empty"},
		{NewMessage("failure.silent", 10*time.Minute), "it said nothing for 10 min"},
		{NewMessage("failure.silent", 300*time.Millisecond), "it said nothing for 0.3 s"},
		{NewMessage("failure.setting-refused", NewMessage("failure.the-model", "opus"), "no"),
			"it rejects the model opus: no"},
	} {
		if got := tc.m.String(); got != tc.want || tc.m.IsZero() != (tc.want == "") {
			t.Errorf("%+v: %q, want %q; zero: %v", tc.m, got, tc.want, tc.m.IsZero())
		}
	}
	m := NewMessage("failure.setting-refused", NewMessage("failure.the-model", "opus"), "no")
	if got := m.In(Language("de").Printer()); got != "er lehnt das Modell opus ab: no" {
		t.Errorf("in German: %q", got)
	}
}
