package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// An agent delegates work to another one. The user approves the task and each action that needs approval. Denied
// actions do not happen, and the other agent ends with the delegating turn.
func TestAnAgentHasAnotherOneWork(t *testing.T) {
	program := realagent.Npm(t, "mcp-inspector")
	town := surroundings(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	town.start()
	work := town.cfg.Projects.DefaultDir
	town.say(
		`[[start]] [[ask cmd="printenv DUCTOR_MCP_TOKEN > token.new; mv token.new token; until [ -e go ]; do sleep 0.05; done"]] [[text "that was all"]]`)
	town.press("✅ Allow once")
	awaitFile(t, filepath.Join(work, "token"))
	raw, err := os.ReadFile(filepath.Join(work, "token"))
	if err != nil {
		t.Fatal(err)
	}
	f := foreign{town, program, []string{"-e", "DUCTOR_MCP_DIR=" + town.cfg.Storage.Dir}}
	begin := func(command, task string) <-chan string {
		said := make(chan string, 1)
		go func() {
			out, _ := f.run(strings.TrimSpace(string(raw)), "--method", "tools/call", "--tool-name", "work_with",
				"--tool-arg", "agent=codex", "--tool-arg", "task="+task)
			said <- out
		}()
		card := town.awaitMessage(func(m telegram.Message) bool {
			return m.HasButton("✅ Allow once") && strings.Contains(m.Text, "another agent") &&
				strings.Contains(m.Text, command)
		})
		town.pressOn(card, "✅ Allow once")
		return said
	}
	for button, done := range map[string]bool{"✅ Allow once": true, "⛔ Deny": false} {
		file := filepath.Join(work, fmt.Sprintf("made-%v", done))
		said := begin("touch "+file, fmt.Sprintf(`[[start]] [[ask cmd="touch %s"]] [[text "the report"]]`, file))
		card := town.awaitMessage(func(m telegram.Message) bool { // the card of the task also contains the command
			return m.HasButton(button) && strings.Contains(m.Text, "touch "+file) &&
				!strings.Contains(m.Text, "another agent")
		})
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it is done before it is allowed")
		}
		town.pressOn(card, button)
		if out := <-said; !strings.Contains(out, "the report") || !strings.Contains(out, "session_id") {
			t.Errorf("the report: %s", out)
		}
		if _, err := os.Stat(file); (err == nil) != done {
			t.Errorf("%s: %v", button, err)
		}
	}
	said := begin("touch late", `[[start]] [[ask cmd="touch late"]] [[text "the report"]]`)
	town.await("touch late")
	town.say("/abort")
	town.await("Aborted")
	if out := <-said; strings.Contains(out, "the report") {
		t.Errorf("after the abort: %s", out)
	}
	town.awaitNoButton("✅ Allow once")
	town.checkNoTurnProcesses()
}

// The real agents delegate work to another one, whose model uses a shell after the user allows it.
func TestRealAgentsHaveAnotherOneWork(t *testing.T) {
	realagent.LongOnly(t)
	for agent, shell := range shellTools() {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			task := fmt.Sprintf(`[[start]] [[tool cmd="touch made" as=%s]] [[text "the report of the other"]]`, shell)
			args, err := json.Marshal(map[string]string{"agent": agent, "task": task})
			if err != nil {
				t.Fatal(err)
			}
			name := map[string]string{"copilot": "ductor-work_with"}[agent]
			if name == "" {
				name = "work_with"
			}
			town.say(`[[start]] [[call %s args=%q]] [[text "that was all"]]`, name, string(args))
			town.await("another agent")
			town.press("✅ Allow once")
			asked := town.awaitMessage(func(m telegram.Message) bool { // the card of the task also contains the command
				return strings.Contains(m.Text, "touch made") && !strings.Contains(m.Text, "another agent") &&
					len(m.Keyboard) > 0
			})
			town.pressOn(asked, "✅ Allow once")
			if m := town.awaitDone(1); !strings.Contains(m.Text, "that was all") {
				t.Errorf("it answers %q", m.Text)
			}
			awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "made"))
			if !strings.Contains(api.Asked(), "worked on it; session_id") {
				t.Error("the model is not told the report")
			}
		})
	}
}
