package main

import (
	"cmp"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
)

// The real agents call tools of ductor during a turn, without an approval card for it.
func TestRealAgentsCallTools(t *testing.T) {
	for _, agent := range realagent.Some("claude", "codex", "gemini", "copilot") {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			ask := cmp.Or(map[string]string{"gemini": "ask_the_user", "copilot": "ductor-ask_user"}[agent], "ask_user")
			town.say(`[[start]] [[call send_message args="{\"text\":\"a **word** in between\"}"]] [[call %s args="{\"question\":\"Which color?\",\"options\":[\"Red\",\"Blue\"]}"]] [[call consult_with args="{\"model\":\"%s\",\"question\":\"What do you think of it?\"}"]] [[text "that was all"]]`, ask, agent)
			if m := town.await("a word in between"); !hasEntity(m, "bold", "word") {
				t.Errorf("nothing bold: %+v", m.Entities)
			}
			town.pressOn(town.awaitButton("Blue"), "Blue")
			if m := town.awaitDone(1); !strings.Contains(m.Text, "that was all") {
				t.Errorf("it answers %q", m.Text)
			}
			for _, want := range []string{"Blue", "(" + agent, "answered; session_id"} {
				if !strings.Contains(api.Asked(), want) {
					t.Errorf("the model is not told %q", want)
				}
			}
		})
	}
}
