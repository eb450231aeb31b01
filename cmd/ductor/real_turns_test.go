package main

import (
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/orchestrator"
)

// The real Claude ends a turn after max_turns answers of its model. Each turn of its process has the whole limit.
func TestTheRealClaudeKeepsToItsTurns(t *testing.T) {
	realagent.LongOnly(t)
	town, _ := realTown(t, "claude", func(c *config.Config) {
		c.Roles = map[string]orchestrator.Role{"short": {Prompt: "Be short.", Append: true,
			Bounds: orchestrator.Bounds{MaxTurns: 2}}}
		c.Sessions.DefaultRole = "short"
	})
	for turn := range 2 {
		town.say(`[[start]] [[tool cmd="echo one"]] [[text "short answer"]]`)
		if done := town.awaitDone(turn + 1); !strings.Contains(done.Text, "short answer") {
			t.Errorf("turn %d: %q", turn, done.Text)
		}
	}
	town.say(`[[start]] [[tool cmd="echo one"]] [[tool cmd="echo two"]] ` +
		`[[tool cmd="echo three"]] [[text "long answer"]]`)
	if ended := town.await("maximum number of turns (2)"); strings.Contains(ended.Text, "long answer") {
		t.Errorf("it goes on: %q", ended.Text)
	}
}
