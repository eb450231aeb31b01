package main

import (
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/internal/realagent"
)

// Real agents are configured as agents of the Agent Client Protocol. After a restart they do not repeat earlier
// answers. They learn of a stopped turn once. An answer that breaks repeatedly is shown once, as a failure.
func TestRealAgentsOfTheAgentClientProtocol(t *testing.T) {
	realagent.LongOnly(t)
	for name, install := range map[string]func(testing.TB, string) realagent.CLI{"gem": realagent.Gemini,
		"qwen": realagent.Qwen} {
		t.Run(name, func(t *testing.T) {
			api := realagent.Model(t, realagent.Key)
			agent := install(t, api.URL())
			own := acp.Settings{Enabled: true, Path: agent.Path, Args: []string{"--acp"}}
			for variable := range agent.Vars {
				if variable != "HOME" && variable != "PATH" && variable != "TMPDIR" {
					own.Env = append(own.Env, variable)
				}
			}
			town := surroundings(t, func(c *config.Config) {
				c.Agents.Default, c.Agents.Fallback = cli.Agent(name), nil
				c.Agents.Claude.Enabled, c.Agents.Codex.Enabled, c.Agents.Gemini.Enabled, c.Agents.Copilot.Enabled = false, false, false, false
				c.Agents.ACP = map[string]acp.Settings{name: own}
				c.Projects.DefaultDir, c.Projects.Roots = agent.Work, []string{agent.Work}
			})
			agent.Setenv(t)
			town.start()
			town.say(`[[start]][[text "an old answer"]]`)
			town.awaitDone(1)
			said := town.say(`[[start]]remember the zebra [[text "half of it"]][[hang]]`)
			town.awaitAfter(said, "half of it")
			town.say("/abort")
			town.awaitAfter(said, "Aborted")
			town.stop()
			town.start()
			said = town.say(`[[start]]go on [[text "a new answer"]]`)
			town.awaitAfter(said, "a new answer")
			prompts := api.Prompts()
			if n := strings.Count(string(prompts[len(prompts)-1].Body), "remember the zebra"); n != 1 {
				t.Errorf("it reads the prompt that was stopped %d times", n)
			}
			for _, m := range town.chat.History() {
				for _, v := range m.Versions {
					if m.ID > said.ID && strings.Contains(v.Text, "an old answer") {
						t.Errorf("it answers with its past: %q", v.Text)
					}
				}
			}
			said = town.say(`[[start]][[text "half of a broken answer"]][[end unsaid]]`)
			if m := town.awaitButton("🔁 Run again"); m.ID < said.ID ||
				strings.Count(m.Text, "half of a broken answer") != 1 {
				t.Errorf("the broken answer is shown as %q", m.Text)
			}
		})
	}
}
