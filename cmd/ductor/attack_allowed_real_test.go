package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// An allowed tool of a real agent runs without asking, but only within its bounds: edits that accept-edits would allow,
// commands that the list names, and none of ductor's own files.
func TestAttackAllowedToolsOfRealAgents(t *testing.T) {
	for _, agent := range realagent.Some("claude", "copilot", "gemini", "codex", "opencode") {
		t.Run(agent, func(t *testing.T) {
			m := startAllowing(t, agent, func(c *config.Config) {
				c.Permissions.Mode, c.Permissions.AllowedTools = "ask", []string{"edit", "shell"}
			})
			project, outside := m.cfg.Projects.DefaultDir, t.TempDir()
			m.checkAsks(false, realagent.Writes(agent, project, "plain.txt", "x"), running("touch made; touch more"))
			m.checkAsks(true, realagent.Writes(agent, project, ".envrc", "x"), running("touch "+m.planted()),
				running("sh -c 'touch "+m.planted()+"'"), running("true > "+m.planted()))
			if agent != "codex" && agent != "gemini" { // patches name no absolute paths; Gemini itself refuses them
				m.checkAsks(true, realagent.Writes(agent, outside, "out.txt", "x"))
			}
			m.checkNotWritten(filepath.Join(project, ".envrc"), filepath.Join(outside, "out.txt"))
			for _, name := range []string{"plain.txt", "made", "more"} {
				if _, err := os.Stat(filepath.Join(project, name)); err != nil {
					t.Errorf("an allowed tool did not run: %v", err)
				}
			}
		})
	}
	t.Run("commands", func(t *testing.T) {
		m := startAllowing(t, "claude", func(c *config.Config) {
			c.Permissions.Mode, c.Permissions.AllowedTools = "ask", []string{"Bash(git init:*)", "Bash(go test *)"}
		})
		m.checkAsks(false, running("git init sub"))
		m.checkAsks(true, running("git init --template="+t.TempDir()+" sub"), running("go test -exec ./evil.sh ./..."))
	})
}

// A real agent that runs once cannot ask. In accept-edits it then changes nothing, and allowed tools do not count.
func TestAttackAgentsRunOnceDecideNothing(t *testing.T) {
	for _, agent := range realagent.Some("copilot", "claude", "gemini", "codex") {
		t.Run(agent, func(t *testing.T) {
			m := startAllowing(t, agent, func(c *config.Config) {
				c.Permissions.Mode, c.Permissions.AllowedTools = "accept-edits", []string{"edit", "shell"}
				c.Agents.Claude.Mode, c.Agents.Codex.Mode = cli.OneShot, cli.OneShot
				c.Agents.Gemini.Mode, c.Agents.Copilot.Mode = cli.OneShot, cli.OneShot
			})
			project := m.cfg.Projects.DefaultDir
			m.checkAsks(false, realagent.Writes(agent, project, "plain.txt", "x"),
				realagent.Writes(agent, project, ".envrc", "x"),
				realagent.Writes(agent, project, ".git/hooks/pre-commit", "x"),
				running("touch made"), running("touch "+m.planted()))
			m.checkNotWritten()
			if entries, err := os.ReadDir(project); err != nil || len(entries) > 0 {
				t.Errorf("the project has %v, %v", entries, err)
			}
		})
	}
}

func startAllowing(t *testing.T, agent string, change func(*config.Config)) *modeTown {
	t.Helper()
	town, _ := realTown(t, agent, change)
	return &modeTown{town: town, denied: map[telegram.MessageID]bool{}}
}

// running returns the model's tool call that runs a command.
func running(command string) string { return `[[tool cmd="` + command + `"]]` }

// planted returns the path of a file in ductor's state directory that does not exist.
func (m *modeTown) planted() string { return filepath.Join(m.cfg.Storage.Dir, "planted") }

// checkAsks runs a turn with each of the calls, and checks whether the agent asks. It denies the requests.
func (m *modeTown) checkAsks(want bool, calls ...string) {
	m.t.Helper()
	for _, call := range calls {
		if asked := m.countRequests(call); (asked > 0) != want {
			m.t.Errorf("%s asks %d times", call, asked)
		}
	}
}

// checkNotWritten checks that these files and m.planted do not exist.
func (m *modeTown) checkNotWritten(paths ...string) {
	m.t.Helper()
	for _, path := range slices.Concat(paths, []string{m.planted()}) {
		if _, err := os.Stat(path); err == nil {
			m.t.Errorf("%s was written", path)
		}
	}
}
