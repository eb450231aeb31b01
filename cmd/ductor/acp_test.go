package main

import (
	"strings"
	"testing"

	"ductor/internal/config"
)

// acpTown is a town whose agent "gem" is the scripted Gemini, as a section [agents.acp.gem] configures it. The program calls itself
// name; empty for its own.
func acpTown(t *testing.T, name string) *town {
	t.Helper()
	t.Setenv("SIM_ACP_NAME", name)
	return newTown(t, func(c *config.Config) {
		c.Agents.Default = "gem"
		c.Agents.ACP = map[string]config.ACP{"gem": {
			Enabled: true, Path: c.Agents.Gemini.Path, Args: []string{"--acp"}, Env: []string{"GEMINI_API_KEY", "SIM_ACP_NAME"},
		}}
	})
}

// After a restart an agent replays its session behind the answer that loads it, whatever it calls itself. Nothing of that is shown.
func TestAnAgentDoesNotAnswerWithItsPast(t *testing.T) {
	for _, name := range []string{"gemini-cli", "an agent that is not known"} {
		t.Run(name, func(t *testing.T) {
			town := acpTown(t, name)
			town.say(`[[text "the first answer"]]`)
			town.awaitDone(1)
			town.stop()
			town.start()
			town.say(`[[text "the second answer"]]`)
			m := town.awaitDone(2)
			for _, v := range m.Versions {
				if strings.Contains(v.Text, "replayed") {
					t.Errorf("it shows %q", v.Text)
				}
			}
			if !strings.HasPrefix(m.Text, "the second answer") {
				t.Errorf("it ends as %q", m.Text)
			}
		})
	}
}
