package updates

import (
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	tests := []struct {
		text string
		want Command
		ok   bool
	}{
		{"/new", Command{Name: "new"}, true},
		{"/New", Command{Name: "new"}, true},
		{"/model opus high", Command{Name: "model", Args: "opus high"}, true},
		{"/model   claude/opus", Command{Name: "model", Args: "claude/opus"}, true},
		{"/abort@ductor_bot", Command{Name: "abort", To: "ductor_bot"}, true},
		{"/cwd@Ductor_Bot ~/src", Command{Name: "cwd", To: "Ductor_Bot", Args: "~/src"}, true},
		{"/cwd\n~/src", Command{Name: "cwd", Args: "~/src"}, true},
		{"/usr/bin/env is missing", Command{}, false},
		{"/", Command{}, false},
		{"//compact", Command{}, false},
		{"/what?", Command{}, false},
		{"/ new", Command{}, false},
		{" /new", Command{}, false},
		{"new", Command{}, false},
		{"", Command{}, false},
		{"/" + strings.Repeat("a", 33), Command{}, false},
	}
	for _, tt := range tests {
		got, ok := ParseCommand(tt.text)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParseCommand(%q) = %+v, %v; want %+v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		"//compact":      "/compact",
		"//compact now":  "/compact now",
		"//usr/bin/env":  "//usr/bin/env",
		"// a comment":   "// a comment",
		"/compact":       "/compact",
		"plain":          "plain",
		"///three":       "///three",
		"//c@ductor_bot": "/c@ductor_bot",
	} {
		if got := unescaped(text); got != want {
			t.Errorf("unescaped(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestIsAbortWord(t *testing.T) {
	words := []string{"stop", "Halt", ""}
	for text, want := range map[string]bool{
		"stop": true, "Stop!": true, " STOP... ": true, "halt": true,
		"stop it": false, "nonstop": false, "": false, "!": false, "stop the server": false,
	} {
		if got := isAbortWord(text, words); got != want {
			t.Errorf("isAbortWord(%q) = %v, want %v", text, got, want)
		}
	}
	if isAbortWord("stop", nil) {
		t.Error("without configured words nothing is an abort word")
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"/new", "/a@b c", "//x", "/\x00", "/é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := ParseCommand(text)
		if !ok {
			return
		}
		if c.Name == "" || c.Name != strings.ToLower(c.Name) || !strings.HasPrefix(text, "/") {
			t.Errorf("ParseCommand(%q) = %+v", text, c)
		}
		if c.Args != strings.TrimSpace(c.Args) || !strings.Contains(text, c.Args) {
			t.Errorf("arguments of %q are %q", text, c.Args)
		}
	})
}
