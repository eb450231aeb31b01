package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/orchestrator"
)

// The user changes the mode and the role of a real agent during a session. Both apply to the next turn, and the
// session continues.
func TestTheRealAgentsInAnotherModeAndRole(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) {
				c.Permissions.Mode = "ask"
				c.Roles = map[string]orchestrator.Role{"reviewer": {Prompt: "You-review-code.", Append: true}}
			})
			file := filepath.Join(town.cfg.Projects.DefaultDir, "a.txt")
			write := `[[start]] [[write path="` + file + `" text="x"]] [[text "that was all"]]`

			town.say("%s", "first question "+write)
			town.press("⛔ Deny")
			town.awaitDone(1)
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was denied was done: %v", err)
			}

			town.say("/permissions accept-edits")
			town.await("edits files in its folder without asking")
			town.say("/role reviewer")
			town.await("plays: reviewer")
			asked := len(api.Prompts())
			town.say("%s", "second question "+write)
			if m := town.awaitDone(2); strings.Contains(m.Text, "denied") {
				t.Errorf("after /permissions accept-edits: %q", m.Text)
			}
			if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) != "x" {
				t.Errorf("the file holds %q, %v", b, err)
			}
			told, knows := false, false
			for _, p := range api.Prompts()[asked:] {
				told = told || strings.Contains(string(p.Body), "You-review-code.")
				knows = knows || strings.Contains(string(p.Body), "first question")
			}
			if !told || !knows {
				t.Errorf("the model was told the role: %v, and the question before: %v", told, knows)
			}
		})
	}
}
