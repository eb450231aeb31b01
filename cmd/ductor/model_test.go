package main

import (
	"slices"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// The user chooses a model of a slow agent in two steps. ductor answers the command at once, acknowledges prompts
// sent directly after it, and runs them with that model. It does not wait for other agents.
func TestAModelOfASlowAgent(t *testing.T) {
	var codex, copilot gatedAgent
	town := surroundings(t, func(c *config.Config) {
		codex, copilot = putGate(t, &c.Agents.Codex.Path), putGate(t, &c.Agents.Copilot.Path)
	})
	codex.set(t, "hang")
	copilot.set(t, "hang")
	town.start()
	town.say("/model codex/gpt-6.1-sol")
	first := town.await("Codex: loading models…")
	said := town.say(`hello [[text "here I am"]]`)
	if _, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		m, ok := v.Message(said.ID)
		return ok && slices.ContainsFunc(m.Reactions, func(r telegram.Reaction) bool { return r.Emoji == "👀" })
	}); err != nil {
		town.fatal(err)
	}
	codex.open(t)
	if m := town.await("Your next message goes to Codex"); m.ID != first.ID {
		t.Errorf("the answer is another message: %q", m.Text)
	}
	if m := town.awaitDone(1); !strings.Contains(m.Text, "here I am") || !strings.Contains(m.Text, "gpt-6.1-sol") {
		t.Errorf("the prompt is answered as %q", m.Text)
	}
	copilot.open(t)
}
