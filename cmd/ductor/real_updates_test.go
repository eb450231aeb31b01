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

// The real OpenCode and Qwen Code name a tool before its input exists, and ask, run and write later. The card, Steps
// and the audit show each command and file, with its output and diff.
func TestRealAgentsOfTheProtocolShowTheirTools(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range realagent.Some("opencode", "qwen") {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			path := filepath.Join(town.cfg.Projects.DefaultDir, "fresh.txt")
			town.say(`[[start]] [[tool cmd="echo first; exit 3"]] [[write path="%s" text="one\ntwo\n"]]`+
				`[[text "that was all"]]`, path)
			for _, about := range []string{"echo first; exit 3", "fresh.txt"} {
				asked := town.awaitMessage(func(m telegram.Message) bool {
					return m.HasButton("✅ Allow once") && strings.Contains(m.Text, about)
				})
				town.pressOn(asked, "✅ Allow once")
			}
			card := town.awaitDone(1)
			town.pressOn(card, "🪜 Steps")
			list := town.await(" steps")
			for _, text := range []string{card.Text, list.Text} {
				for _, want := range []string{"Run echo first; exit 3", "Edit fresh.txt"} {
					if !strings.Contains(text, want) {
						t.Errorf("%q is missing in %q", want, text)
					}
				}
			}
			if !strings.Contains(list.Text, "➕ fresh.txt") {
				t.Errorf("Steps lack the diff: %q", list.Text)
			}
			town.pressOn(list, "1")
			town.await("first")
			if content, err := os.ReadFile(path); string(content) != "one\ntwo\n" {
				t.Errorf("the file is %q, %v", content, err)
			}
			audit := town.answer("/audit", "echo first; exit 3")
			if !strings.Contains(audit, "fresh.txt") || strings.Contains(audit, "bash") ||
				strings.Contains(audit, "Shell") {
				t.Errorf("the audit is %q", audit)
			}
		})
	}
}
