package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
)

// An action that a user allowed is in the audit once, as allowed, with every agent.
func TestWhatWasAllowedIsAuditedOnce(t *testing.T) {
	for _, agent := range []string{"codex", "gemini"} {
		t.Run(agent, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) {
				onlyAgent(c, agent)
				c.Permissions.Mode = "ask"
			})
			made := filepath.Join(town.cfg.Projects.DefaultDir, "made")
			town.say(`[[start]] [[ask cmd="touch %s"]] [[text "that was all"]]`, made)
			town.press("✅ Allow once")
			town.awaitDone(1)
			town.say("/audit")
			log := town.await("✅ allowed").Text
			if !strings.Contains(log, "✅ allowed by you\n") {
				t.Errorf("the audit does not say who allowed it: %s", log)
			}
			if strings.Contains(log, "▶️ ran without asking") || strings.Count(log, "touch") != 1 {
				t.Errorf("the audit is %s", log)
			}
		})
	}
}
