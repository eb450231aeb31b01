package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
)

// realTown returns a town with a real agent CLI and a simulated model. change may alter the configuration; it may be
// nil. The agents of realagent.OfProtocol, "gem" for Gemini and "cop" for Copilot are configured in [agents.acp.NAME].
func realTown(t testing.TB, agent string, change func(*config.Config)) (*town, *modelapi.Server) {
	t.Helper()
	town, api := realSurroundings(t, agent, change)
	town.start()
	return town, api
}

// realSurroundings is realTown without a running app.
func realSurroundings(t testing.TB, agent string, change func(*config.Config)) (*town, *modelapi.Server) {
	t.Helper()
	api := realagent.Model(t, realagent.Key)
	var c realagent.CLI
	town := surroundings(t, func(cfg *config.Config) {
		cfg.Agents.Default, cfg.Agents.Fallback = cli.Agent(agent), nil
		cfg.Permissions.Mode = "bypass"
		a := &cfg.Agents
		a.Claude.Enabled, a.Codex.Enabled = agent == "claude", agent == "codex"
		a.Gemini.Enabled, a.Copilot.Enabled = agent == "gemini", agent == "copilot"
		switch agent {
		case "claude":
			c = realagent.Claude(t, api.URL())
			a.Claude.Path = c.Path
		case "codex":
			c = realagent.Codex(t, api.URL())
			a.Codex.Path = c.Path
		case "gemini":
			c = realagent.Gemini(t, api.URL())
			a.Gemini.Path = c.Path
		case "copilot":
			c = realagent.Copilot(t, api.URL())
			a.Copilot.Path = c.Path
		case "gem":
			c = realagent.Gemini(t, api.URL())
			c.ACPArgs = []string{"--acp"}
		case "cop":
			c = realagent.Copilot(t, api.URL())
			c.ACPArgs = []string{"--acp"}
		default:
			c = realagent.OfProtocol()[agent](t, api.URL())
		}
		if c.ACPArgs != nil {
			a.ACP = map[string]acp.Settings{agent: {Enabled: true, Path: c.Path, Args: c.ACPArgs, Env: c.Names()}}
		}
		cfg.Projects.DefaultDir, cfg.Projects.Roots = c.Work, []string{c.Work}
		if change != nil {
			change(cfg)
		}
	})
	c.Setenv(t)
	t.Setenv("CLAUDE_CODE_MAX_RETRIES", "1") // otherwise Claude retries ten times after a rate limit
	return town, api
}

// The test checks what users see of the real agents: answers, tools, failures and aborts.
func TestTheRealAgentsInTheChat(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, nil)
			work := town.cfg.Projects.DefaultDir

			town.say(
				`first question [[tool cmd="sleep 0.3; echo out-of-the-tool > made.txt; cat made.txt"]] [[text "A **streamed** answer, " chunk=3 delay=2ms]] [[text "whole."]]`)
			m := town.awaitDone(1)
			for _, want := range []string{"✓", "made.txt", "A streamed answer, whole."} {
				if !strings.Contains(m.Text, want) {
					t.Errorf("the card lacks %q: %q", want, m.Text)
				}
			}
			if !hasEntity(m, "bold", "streamed") {
				t.Errorf("nothing bold: %+v", m.Entities)
			}
			if b, err := os.ReadFile(filepath.Join(work, "made.txt")); err != nil ||
				strings.TrimSpace(string(b)) != "out-of-the-tool" {
				t.Errorf("the tool made %q, %v", b, err)
			}

			town.stop()
			town.start()
			town.say("second question [[history]]")
			if m := town.awaitDone(2); !strings.Contains(m.Text, "first question") {
				t.Errorf("a new process does not know the session: %q", m.Text)
			}

			town.awaitAfter(town.say("[[error 401 times=20]]"), "not logged in")
			town.awaitAfter(town.say("[[start]] [[error 429 times=20]]"), "usage limit")

			// The API's key is checked too, so each request had the right key.
			asked := len(api.Requests())
			town.say(`[[start]] [[tool cmd="setsid sh -c 'sleep 600' & touch running; sleep 600"]]`)
			awaitFile(t, filepath.Join(work, "running"))
			town.say("/abort")
			town.await("Aborted")
			town.checkNoTurnProcesses()
			if len(api.Requests()) == asked {
				t.Error("the model was not asked")
			}

			town.awaitAfter(town.say(`and on it goes [[start]] [[text "still here"]]`), "still here")
		})
	}
}

// awaitAfter waits for a message of the bot that contains part, below a user's message.
func (town *town) awaitAfter(said telegram.Message, part string) telegram.Message {
	town.t.Helper()
	return town.awaitMessage(func(m telegram.Message) bool {
		return m.ID > said.ID && strings.Contains(m.Text, part)
	})
}

func TestCodexModelsInTheMenu(t *testing.T) {
	town, _ := realTown(t, "codex", nil)
	town.say("/model") // one agent alone: its models are asked for at once
	m := town.await("model of Codex")
	if len(m.Keyboard) < 3 {
		t.Errorf("the menu of the real Codex has no models: %q %+v", m.Text, m.Keyboard)
	}
}
