package main

import (
	"strings"
	"testing"

	"ductor/internal/config"
)

// If a prompt fails before its agent did anything, the chat does not claim a handoff. An agent without an answer so
// far has lost no session. An agent that returns is not introduced as new.
func TestAFailedPromptHandsNothingOver(t *testing.T) {
	var g gatedAgent
	town := newTown(t, func(c *config.Config) { g = putGate(t, &c.Agents.Claude.Path) })
	town.say(`@codex first [[start]][[text "the plan"]]`)
	town.awaitDone(1)
	g.fail(t, "You've hit your limit", "api_error_status", 429)
	town.say(`second [[start]][[text "never"]]`)
	if m := town.await("reached its usage limit"); strings.Contains(m.Text, "handed") {
		t.Errorf("the prompt that failed: %s", m.Text)
	}
	town.stop() // stops the agent too, which would fail again
	g.open(t)
	town.start()
	town.say(`third [[start]][[text "it is built"]]`)
	m := town.await("it is built")
	if strings.Contains(m.Text, "lost this session") || !strings.Contains(m.Text, "handed 2 turns to Claude") {
		t.Errorf("the prompt that works: %s", m.Text)
	}
	town.say(`@codex fourth [[start]][[text "it is merged"]]`)
	town.await("it is merged")
	for _, prompt := range append(promptsOf(t, "claude"), promptsOf(t, "codex")...) {
		if strings.Contains(prompt, "you joined") {
			t.Errorf("an agent reads %q", prompt)
		}
	}
}
