package roles

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Every file is a role with a prompt, or invalid.
func FuzzRole(f *testing.F) {
	f.Add("---\nagent: claude\ntools: [shell]\n---\nYou review.")
	f.Add("---\na: &a [1]\nb: [*a, *a]\n---\nx")
	f.Add("\ufeff---\r\nappend: false\r\n---\r\nx")
	f.Fuzz(func(t *testing.T, text string) {
		role, err := readRole(fstest.MapFS{"x.md": {Data: []byte(text)}}, "x.md")
		if err == nil && strings.TrimSpace(role.Prompt) == "" {
			t.Fatal("it has no prompt")
		}
	})
}
