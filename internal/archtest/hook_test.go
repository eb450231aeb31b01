package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommitHook runs scripts/hooks/commit-msg on messages.
func TestCommitHook(t *testing.T) {
	hook, err := filepath.Abs(filepath.Join(root, "scripts", "hooks", "commit-msg"))
	if err != nil {
		t.Fatal(err)
	}
	atLimit := "bot: add " + strings.Repeat("ä", 72-len("bot: add "))
	for _, c := range []struct{ message, problem string }{
		{"bot: show a queue card", ""},
		{"bot, internal/store: keep no text of a handled message\n\nWhy it is so.\n", ""},
		{"cli/codex: pass the model on", ""},
		{atLimit, ""},
		{"\n# a comment\nbot: show a queue card\n# On branch main\n", ""},
		{"bot: show a queue card\n# ------------------------ >8 ------------------------\ndiff", ""},
		{`Revert "bot: added things."`, ""},
		{"fixup! bot: show a queue card", ""},
		{atLimit + "x", "it has 73 characters"},
		{"bot: show a queue card.", "ends with a period"},
		{"bot: show a queue card\nand more", "the line below it is not empty"},
		{"show a queue card", "does not read"},
		{"bot: show", "does not read"},
		{"Bot: show a card", "does not read"},
		{"", "does not read"},
		{"bot: Show a card", "small letter"},
		{"bot: shows a card", "no imperative"},
		{"bot: added a card", "no imperative"},
		{"bot: adding a card", "no imperative"},
		{"bot: a card shows more", "no verb"},
	} {
		file := filepath.Join(t.TempDir(), "message")
		if err := os.WriteFile(file, []byte(c.message), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), hook, file).CombinedOutput()
		if accepted := err == nil; accepted != (c.problem == "") || !strings.Contains(string(out), c.problem) {
			t.Errorf("%q: %v, %q; want %q", c.message, err, out, c.problem)
		}
	}
}
