package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// An agent runs "cd sub", and then a command with a relative path. If this command ran in sub, the link there would lead
// it out of the project, and neither the card nor a rule would show that.
func TestTheRealAgentsRunEveryCommandInTheProject(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "claude-agent-acp", "copilot", "gemini", "opencode", "qwen"} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			project, outside := town.cfg.Projects.DefaultDir, t.TempDir()
			if err := os.Mkdir(filepath.Join(project, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, filepath.Join(project, "sub", "link")); err != nil {
				t.Fatal(err)
			}
			said := town.say(`[[start]] [[tool cmd="cd sub && touch here"]] [[tool cmd="touch link/planted"]]
				[[text "it ended"]]`)
			allowed := map[telegram.MessageID]bool{}
			for done := false; !done; {
				m := town.awaitMessage(func(m telegram.Message) bool {
					news := m.HasButton("✅ Allow once") || strings.Contains(m.Text, "it ended")
					return m.ID > said.ID && !allowed[m.ID] && news
				})
				if done = !m.HasButton("✅ Allow once"); !done {
					allowed[m.ID] = true
					town.pressOn(m, "✅ Allow once")
				}
			}
			if _, err := os.Stat(filepath.Join(project, "sub", "here")); err != nil {
				t.Error("its first command did not run")
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("its second command ran in sub, and wrote %v, %v", entries, err)
			}
		})
	}
}
