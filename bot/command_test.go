package bot

import (
	"os"
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	tests := []struct {
		text string
		want command
		ok   bool
	}{
		{"/new", command{name: "new"}, true},
		{"/New", command{name: "new"}, true},
		{"/model opus high", command{name: "model", args: "opus high"}, true},
		{"/model   claude/opus", command{name: "model", args: "claude/opus"}, true},
		{"/abort@ductor_bot", command{name: "abort", to: "ductor_bot"}, true},
		{"/cwd@Ductor_Bot ~/src", command{name: "cwd", to: "Ductor_Bot", args: "~/src"}, true},
		{"/cwd\n~/src", command{name: "cwd", args: "~/src"}, true},
		{"/usr/bin/env is missing", command{}, false},
		{"/", command{}, false},
		{"//compact", command{}, false},
		{"/what?", command{}, false},
		{"/ new", command{}, false},
		{" /new", command{}, false},
		{"new", command{}, false},
		{"", command{}, false},
		{"/" + strings.Repeat("a", 33), command{}, false},
	}
	for _, tt := range tests {
		got, ok := parseCommand(tt.text)
		if got != tt.want || ok != tt.ok {
			t.Errorf("parseCommand(%q) = %+v, %v; want %+v, %v", tt.text, got, ok, tt.want, tt.ok)
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
		c, ok := parseCommand(text)
		if !ok {
			return
		}
		if c.name == "" || c.name != strings.ToLower(c.name) || !strings.HasPrefix(text, "/") {
			t.Errorf("parseCommand(%q) = %+v", text, c)
		}
		if c.args != strings.TrimSpace(c.args) || !strings.Contains(text, c.args) {
			t.Errorf("arguments of %q are %q", text, c.args)
		}
	})
}

// Every command of the menu is in the pages for users.
func TestCommandsAreInThePages(t *testing.T) {
	for _, page := range []string{"../README.md", "../docs/chat.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandMenu() {
			if !strings.Contains(string(text), "| `/"+m.Command+"`") {
				t.Errorf("%s does not tell of /%s", page, m.Command)
			}
		}
	}
}
