package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	for word, want := range map[string]string{
		"modle": "model", "Mode": "mode", "mod": "mode", "tokn": "token", "tokens_file": "token_file",
		"allowed_user": "allowed_users", "colour": "", "x": "", "": "",
	} {
		got, ok := Of(word, []string{"token", "token_file", "model", "mode", "allowed_users", "id"})
		if got != want || ok != (want != "") {
			t.Errorf("for %q: got %q, want %q", word, got, want)
		}
	}
}

func TestEditDistanceLaws(t *testing.T) {
	words := rapid.StringMatching(`[a-c]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := words.Draw(t, "a"), words.Draw(t, "b")
		d := editDistance(a, b)
		if d != editDistance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < len(a)-len(b) || d < len(b)-len(a) {
			t.Errorf("distance of %q and %q is %d", a, b, d)
		}
		at := rapid.IntRange(0, len(a)).Draw(t, "at")
		if d := editDistance(a, a[:at]+"x"+a[at:]); d != 1 {
			t.Errorf("one byte more makes a distance of %d", d)
		}
	})
}
