package main

import (
	"cmp"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// The real agents call ductor's tools during a turn without an approval. Each tool has the same name for all agents:
// in its line, also while it waits for the user, in Steps, and on the card with which a tool asks the user.
func TestRealAgentsCallTools(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range realagent.Some("claude", "codex", "gemini", "copilot") {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			ask := cmp.Or(map[string]string{"gemini": "ask_the_user", "copilot": "ductor-ask_user"}[agent], "ask_user")
			town.say(
				`[[start]] [[call send_message args="{\"text\":\"a **word** in between\"}"]] [[call %s args="{\"question\":\"Which color?\",\"options\":[\"Red\",\"Blue\"]}"]] [[call consult_with args="{\"model\":\"%s\",\"question\":\"What do you think of it?\"}"]] [[text "that was all"]]`, ask, agent)
			town.awaitMessage(func(m telegram.Message) bool {
				return m.Text == "a word in between" && hasEntity(m, "bold", "word")
			})
			title := func(s string) string {
				if agent == "gemini" { // Gemini does not report a tool's input
					return ""
				}
				return " " + s
			}
			question := town.awaitButton("Blue")
			town.await("🔐 ❓ question" + title("Which color?"))
			town.pressOn(question, "Blue")
			done := town.awaitDone(1)
			for _, want := range []string{"that was all", "✓ 💬 message" + title("a word in between"),
				"✓ ❓ question" + title("Which color?"), "✓ 💡 another model" + title("What do you")} {
				if !strings.Contains(done.Text, want) {
					t.Errorf("the card lacks %q: %q", want, done.Text)
				}
			}
			town.pressOn(done, "🪜 Steps")
			town.await("1 ✓ 💬 message" + title("a word in between"))
			for _, want := range []string{"Blue", "(" + agent, "answered; session_id"} {
				if !strings.Contains(api.Asked(), want) {
					t.Errorf("the model is not told %q", want)
				}
			}
			town.say(
				`[[start]] [[call %s args="{\"when\":\"every day at 9\",\"prompt\":\"look\"}"]] [[text "that was all"]]`, strings.NewReplacer("ask_user", "schedule", "ask_the_user", "schedule").Replace(ask))
			town.await("🔐 ⏰ schedule" + title("look"))
			if card := town.awaitButton("✅ Allow once"); !strings.Contains(card.Text, "create this schedule?") {
				t.Errorf("the card is %q", card.Text)
			}
			town.press("⛔ Deny")
			town.awaitDone(2)
		})
	}
}
