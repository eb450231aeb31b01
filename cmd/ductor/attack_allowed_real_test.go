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
			a := startAllowed(t, agent, func(c *config.Config) {
				c.Permissions.Mode, c.Permissions.AllowedTools = "ask", []string{"edit", "shell"}
			})
			unasked := []string{realagent.Writes(agent, a.project, "plain.txt", "x"), `[[tool cmd="touch made; touch more"]]`}
			asked := []string{
				realagent.Writes(agent, a.project, ".envrc", "x"), a.command("touch " + a.own),
				a.command("sh -c 'touch " + a.own + "'"), a.command("true > " + a.own),
			}
			if agent != "codex" && agent != "gemini" { // patches name no absolute paths; Gemini itself refuses such paths
				asked = append(asked, realagent.Writes(agent, a.outside, "out.txt", "x"))
			}
			a.check(unasked, asked)
			for _, name := range []string{"plain.txt", "made", "more"} {
				if _, err := os.Stat(filepath.Join(a.project, name)); err != nil {
					t.Errorf("an allowed tool did not run: %v", err)
				}
			}
		})
	}
	t.Run("commands", func(t *testing.T) {
		a := startAllowed(t, "claude", func(c *config.Config) {
			c.Permissions.Mode, c.Permissions.AllowedTools = "ask", []string{"Bash(git init:*)", "Bash(go test *)"}
		})
		a.check([]string{a.command("git init sub")}, []string{
			a.command("git init --template=" + a.outside + " sub"), a.command("go test -exec ./evil.sh ./..."),
		})
	})
}

// A real agent that runs once cannot ask. In accept-edits it then changes nothing, and allowed tools do not count.
func TestAttackAgentsRunOnceDecideNothing(t *testing.T) {
	for _, agent := range realagent.Some("copilot", "claude", "gemini", "codex") {
		t.Run(agent, func(t *testing.T) {
			a := startAllowed(t, agent, func(c *config.Config) {
				c.Permissions.Mode, c.Permissions.AllowedTools = "accept-edits", []string{"edit", "shell"}
				c.Agents.Claude.Mode, c.Agents.Codex.Mode = cli.OneShot, cli.OneShot
				c.Agents.Gemini.Mode, c.Agents.Copilot.Mode = cli.OneShot, cli.OneShot
			})
			for _, call := range []string{
				realagent.Writes(agent, a.project, "plain.txt", "x"), realagent.Writes(agent, a.project, ".envrc", "x"),
				realagent.Writes(agent, a.project, ".git/hooks/pre-commit", "x"), a.command("touch made"),
				a.command("touch " + a.own),
			} {
				if a.countRequests(call) > 0 {
					t.Errorf("%s asks", call)
				}
			}
			entries, err := os.ReadDir(a.project)
			if err != nil || len(entries) > 0 {
				t.Errorf("the project has %v, %v", entries, err)
			}
			if _, err := os.Stat(a.own); err == nil {
				t.Error("one of ductor's own files was written")
			}
		})
	}
}

// allowedTown is a town whose agent calls one tool in each turn.
type allowedTown struct {
	*modeTown
	project, outside string
	own              string // a path in ductor's state directory
}

func startAllowed(t *testing.T, agent string, change func(*config.Config)) *allowedTown {
	t.Helper()
	town, _ := realTown(t, agent, change)
	return &allowedTown{
		modeTown: &modeTown{town: town, denied: map[telegram.MessageID]bool{}},
		project:  town.cfg.Projects.DefaultDir, outside: t.TempDir(),
		own: filepath.Join(town.cfg.Storage.Dir, "planted"),
	}
}

func (a *allowedTown) command(line string) string { return `[[tool cmd="` + line + `"]]` }

// check runs turns that do not ask, and turns that ask. It denies the requests of the latter.
func (a *allowedTown) check(unasked, asked []string) {
	a.t.Helper()
	for _, call := range slices.Concat(unasked, asked) {
		if got, want := a.countRequests(call) > 0, slices.Contains(asked, call); got != want {
			a.t.Errorf("%s asks: %v", call, got)
		}
	}
	entries, err := os.ReadDir(a.outside)
	if _, missing := os.Stat(a.own); err != nil || len(entries) > 0 || missing == nil {
		a.t.Errorf("files outside of the project: %v, %v, and one of ductor's own: %v", entries, err, missing == nil)
	}
	if _, err := os.Stat(filepath.Join(a.project, ".envrc")); err == nil {
		a.t.Error("a hidden file was written")
	}
}
