package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
)

// The user chooses model, effort and mode of the real OpenCode by buttons, and mode and model of Qwen Code, which has
// no efforts for its model. A turn shows its command with the output and its change with the diff, and the audit has
// both.
func TestOpenCodeAndQwenByButtons(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"opencode", "qwen"} {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "plan" })
			old := filepath.Join(town.cfg.Projects.DefaultDir, "old.txt")
			if err := os.WriteFile(old, []byte("first\nsecond\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			town.say("/model")
			town.pressPart(map[string]string{"opencode": "Scripted model", "qwen": "sim-1"}[agent])
			if agent == "opencode" {
				town.pressPart("high")
			}
			town.await("sim-1")
			town.say("/permissions")
			town.pressPart("ask")
			town.await("ask: ")
			town.say(`[[start]] [[tool cmd="echo of it; touch made"]] %s [[text "It is done."]]`,
				realagent.Replaces(agent, town.cfg.Projects.DefaultDir, "old.txt", "second", "changed"))
			for _, part := range []string{"touch made", "changed"} {
				town.pressOn(town.awaitMessage(func(m telegram.Message) bool {
					return m.HasButton("✅ Allow once") && strings.Contains(m.Text, part)
				}), "✅ Allow once")
			}
			card := town.awaitDone(1)
			for _, want := range []string{"echo of it; touch made", "old.txt", "It is done."} {
				if !strings.Contains(card.Text, want) {
					t.Errorf("the card lacks %q: %q", want, card.Text)
				}
			}
			hard := func(r modelapi.Request) bool { return r.Effort == "high" }
			if agent == "opencode" && !slices.ContainsFunc(api.Prompts(), hard) {
				t.Error("the model was not asked with the effort")
			}
			town.pressOn(card, "🪜 Steps")
			town.press("1")
			town.await(map[string]string{"opencode": "\nof it", "qwen": "Output: of it"}[agent])
			_, audit, _ := runDuctor(t, "audit", "--json", "-c", town.writeConfig())
			for _, want := range []string{"echo of it; touch made", "old.txt"} {
				if !strings.Contains(audit, want) {
					t.Errorf("the audit lacks %q: %s", want, audit)
				}
			}
		})
	}
}

// pressPart presses the newest button whose text contains this.
func (town *town) pressPart(part string) {
	town.t.Helper()
	var name string
	m := town.awaitMessage(func(m telegram.Message) bool {
		for _, button := range slices.Concat(m.Keyboard...) {
			if strings.Contains(button.Text, part) {
				name = button.Text
				return true
			}
		}
		return false
	})
	town.pressOn(m, name)
}
