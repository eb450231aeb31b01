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
)

// The real Codex asks for a command in another directory, and the card begins with that directory. The card of the
// same command in its own directory has no such line.
func TestTheRealCodexInAnotherDirectory(t *testing.T) {
	town, _ := realTown(t, "codex", func(c *config.Config) { c.Permissions.Mode = "ask" })
	other := t.TempDir()
	file := filepath.Join(other, "made")

	town.say(`[[start]] [[tool cmd="touch %s" dir="%s"]] [[text "that was all"]]`, file, other)
	card := town.awaitButton("⛔ Deny")
	if want := "⚠️ cwd: " + other; !hasEntity(card, "bold", want) || !strings.Contains(card.Text, "touch "+file) {
		t.Errorf("the card does not show %q: %q", want, card.Text)
	}
	if card.HasButton("Allow this session…") || card.HasButton("Allow pattern…") || !card.HasButton("✅ Allow once") {
		t.Errorf("the card offers %v", card.Keyboard)
	}
	town.pressOn(card, "⛔ Deny")
	town.awaitDone(1)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was denied was done: %v", err)
	}

	town.say(`[[start]] [[tool cmd="touch here"]] [[text "that was all"]]`)
	card = town.awaitButton("Allow this session…")
	if strings.Contains(card.Text, "⚠️") || strings.Contains(card.Text, "This is cut off here") {
		t.Errorf("the card of a usual command says %q", card.Text)
	}
	town.pressOn(card, "✅ Allow once")
	town.awaitDone(2)
}

// With each real agent, one press allows a kind of command, and the next command of that kind runs without asking.
func TestTheRealAgentsAllowAPattern(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range realagent.Some("claude", "codex", "copilot", "gemini") {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			town.say(`[[start]] [[tool cmd="touch one"]] [[text "the first"]]`)
			town.press("Allow pattern…")
			town.await("touch *")
			town.press("✅ Allow with this rule")
			town.await("the first")
			town.say(`[[start]] [[tool cmd="touch two"]] [[text "the second"]]`)
			town.await("the second")
			awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "two"))

			town.say(`[[start]] [[tool cmd="touch three; id"]] [[text "the third"]]`)
			card := town.awaitButton("✅ Allow once")
			if card.HasButton("Allow pattern…") {
				t.Errorf("a compound command has a pattern: %v", card.Keyboard)
			}
			town.pressOn(card, "⛔ Deny")
		})
	}
}

// A press on a plan's card starts the work, and edits are accepted from then on, in this turn and the next. The model
// is told that the plan was approved unchanged.
func TestTheRealAgentsBeginAPlan(t *testing.T) {
	realagent.LongOnly(t)
	for agent, call := range realagent.SomeOf(map[string]string{
		"claude": `[[call ExitPlanMode args="{}"]]`, "gemini": geminiPlans,
	}) {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "plan" })
			town.say(`[[start]] [[text "before the plan"]]`)
			town.await("before the plan")
			if agent == "claude" {
				realagent.WritePlan(t, api, "the whole plan")
			}
			town.say(`[[start]] %s [[write path=one.txt text=x]] [[write path=two.txt text=x]] [[text "the first"]]`,
				call)
			card := town.awaitButton("▶️ Begin and accept edits")
			if !card.HasButton("▶️ Begin") || !card.HasButton("📝 Keep planning") ||
				!strings.Contains(card.Text, "the whole plan") {
				t.Errorf("the card is %q with %v", card.Text, card.Keyboard)
			}
			town.pressOn(card, "▶️ Begin and accept edits")
			if m := town.await("the first"); strings.Contains(m.Text, "MODE_UPDATE") {
				t.Errorf("the answer is %q", m.Text)
			}
			town.say(`[[start]] [[write path=three.txt text=x]] [[text "the second"]]`)
			town.await("the second")
			for _, name := range []string{"one.txt", "two.txt", "three.txt"} {
				awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, name))
			}
			town.say("/permissions")
			town.await("Now: accept-edits")
			for _, asked := range api.Prompts() {
				if strings.Contains(string(asked.Body), "edited by user") {
					t.Errorf("the model reads that the user edited the plan")
				}
			}
		})
	}
}

// geminiPlans makes Gemini write its plan and ask to begin.
const geminiPlans = `[[write path=plan.md text="the whole plan"]] [[call exit_plan_mode args="{\"plan_filename\":\"plan.md\"}"]]`

// After the user approved a plan, the real Gemini asks before it writes, also as an ACP agent.
func TestTheRealGeminiAsksAfterAPlan(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"gemini", "gem"} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "plan" })
			town.say(`[[start]] %s [[write path=one.txt text=x]] [[text "the first"]]`, geminiPlans)
			card := town.awaitButton("▶️ Begin")
			if !strings.Contains(card.Text, "the whole plan") || card.HasButton("✅ Allow once") {
				t.Errorf("the card is %q with %v", card.Text, card.Keyboard)
			}
			town.pressOn(card, "▶️ Begin")
			town.press("✅ Allow once")
			if m := town.await("the first"); strings.Contains(m.Text, "MODE_UPDATE") ||
				strings.Contains(m.Text, "Requesting plan") {
				t.Errorf("the answer is %q", m.Text)
			}
			awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "one.txt"))
			town.say("/permissions")
			town.await("Now: ask")
		})
	}
}

// A press on an edit's card allows it and all following edits.
func TestTheRealAgentsEditsAreAcceptedFromNowOn(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex", "copilot", "gemini", "opencode", "qwen", "gem", "cop"} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			work := town.cfg.Projects.DefaultDir
			path := func(name string) string {
				if agent == "codex" {
					return name
				}
				return filepath.Join(work, name)
			}
			town.say(`[[start]] [[write path=%s text=x]] [[write path=%s text=x]] [[text "the first"]]`,
				path("one.txt"), path("two.txt"))
			town.press("✅ Accept edits from now on")
			town.await("From now on the agent edits files in its folder without asking")
			town.await("the first")
			town.say(`[[start]] [[write path=%s text=x]] [[text "the second"]]`, path("three.txt"))
			town.await("the second")
			for _, name := range []string{"one.txt", "two.txt", "three.txt"} {
				awaitFile(t, filepath.Join(work, name))
			}
		})
	}
}
