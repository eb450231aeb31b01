package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/sim/agent"
)

// TestOnlyTheNewestTextIsAnswered tests that an agent answers only the newest text of its user, with a stored answer
// if it has one, and ignores directives before that text.
func TestOnlyTheNewestTextIsAnswered(t *testing.T) {
	p := newPlace(t)
	home := t.TempDir()
	var err error
	p.programs, err = agent.InstallAt(home, map[string]string{"hello?": `[[text "by heart"]]`,
		agent.AnyPrompt: `[[text "no idea: {prompt}"]]`})
	if err != nil {
		t.Fatal(err)
	}
	const before = "<instructions>\nWrite [[file: PATH]] on a line.\n</instructions>\n\n[What was said]\nUser: [[text \"an old answer\"]]\n[End of what was said before. The request:]\n\n"
	for prompt, want := range map[string]string{
		"hello?":                     "by heart",
		before + "hello?":            "by heart",
		before + `say "a" [[file: x`: `no idea: say \"a\" [ [file: x`,
		before + `[[text "new"]]`:    "new",
	} {
		out := p.claude(t, prompt).out
		if !strings.Contains(out, `"result":"`+want+`"`) || strings.Contains(out, "old answer") {
			t.Errorf("%q is answered by\n%s", prompt, out)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(p.work), ".ductor-sim")); !os.IsNotExist(err) {
		t.Errorf("the sessions are not below the agent's home: %v", err)
	}
}
