package config

import (
	"os"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"
)

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		change     Change
		want       string // a part of it, or of the error
	}{
		{"an empty file", "", Change{"telegram", "token", "1:a", "The token."}, "[telegram]\n# The token.\ntoken = '1:a'\n"},
		{"a value and its comment", "[a]\nb = 1 # one\nc = 2\n", Change{"a", "b", 3, "new"}, "[a]\nb = 3 # one\nc = 2\n"},
		{"a list of some lines", "[a]\nb = [1, # ]\n  2,\n]\nc = 2\n", Change{"a", "b", []int64{7}, ""}, "[a]\nb = [7]\nc = 2\n"},
		{"a string with everything", "[a]\nb = \"\"\"x # ] \"\n\"y\"\"\"\"\nc = 'z'\n", Change{"a", "b", "w", ""}, "[a]\nb = 'w'\nc = 'z'\n"},
		{"a key that is not there", "# top\n[a] # of a\nc = 2\n[b]\n", Change{"a", "b", "x", "new"}, "# top\n[a] # of a\n# new\nb = 'x'\nc = 2\n[b]\n"},
		{"a table that is not there", "x = 1", Change{"a.b", "c", "y", ""}, "x = 1\n\n[a.b]\nc = 'y'\n"},
		{"a dotted key", "a.b = 1\n", Change{"a", "b", 2, ""}, "a.b = 2\n"},
		{"no key of another table", "[aa]\nb = 1\n[a]\n", Change{"a", "b", 2, ""}, "[aa]\nb = 1\n[a]\nb = 2\n"},
		{"an inline table", "a = { b = 1 }\n", Change{"a", "b", 2, ""}, "set a.b: the file has it in a form that cannot be changed"},
		{"a list of tables", "[[a]]\nb = 1\n", Change{"a", "b", 2, ""}, "set a.b: the file has it in a form that cannot be changed"},
	} {
		got, err := Edit([]byte(c.text), []Change{c.change})
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want && (err == nil || !strings.Contains(string(got), c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Whatever is set in the example: each line that is not about the key stays, and the file still says all it said.
func TestEditKeepsTheExample(t *testing.T) {
	example, err := os.ReadFile("../../config.toml.example")
	if err != nil {
		t.Fatal(err)
	}
	changes := []Change{
		{"telegram", "token", "123456789:AAExample-token_for-tests0000000000", ""}, {"telegram", "allowed_users", []int64{77}, ""},
		{"agents", "default", "codex", ""}, {"agents.codex", "model", "a \"model\"", ""}, {"projects", "roots", []string{"/a b", "/c"}, ""},
		{"sandbox", "mode", "docker", ""}, {"files", "new_key", 5, "never seen"},
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(changes).Draw(t, "change")
		next, err := Edit(example, []Change{c})
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]any
		if err := toml.Unmarshal(next, &all); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(example)) {
			if !strings.HasPrefix(line, c.Key+" ") && !strings.Contains(string(next), line) {
				t.Errorf("%s.%s: lost %q", c.Table, c.Key, line)
			}
		}
	})
}
