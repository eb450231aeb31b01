package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/orchestrator"
)

// shellTools returns the names of the agents' shells in their models' calls.
func shellTools() map[string]string {
	return map[string]string{"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command",
		"copilot": "bash"}
}

// If a list denies the shell, a command that the real agent's model calls never runs, in every permission mode
// including bypass. Without the list it runs.
func TestTheRealAgentsKeepToAListThatDeniesTheShell(t *testing.T) {
	realagent.LongOnly(t)
	for agent, name := range realagent.SomeOf(shellTools()) {
		for _, run := range realagent.Some(cli.Live, cli.OneShot) {
			t.Run(agent+" "+string(run), func(t *testing.T) {
				town, _ := realTown(t, agent, func(c *config.Config) {
					c.Permissions.Mode = "ask"
					c.Permissions.DeniedTools = []string{"shell"}
					a := &c.Agents
					a.Claude.Mode, a.Codex.Mode, a.Gemini.Mode, a.Copilot.Mode = run, run, run, run
				})
				for i, mode := range cli.PermissionModes() {
					made := fmt.Sprintf("made-%s", mode)
					town.say("/permissions %s", mode)
					if mode == cli.Bypass {
						town.press("Yes, bypass everything")
					}
					end := fmt.Sprintf("the end of %s", mode)
					town.say(`[[start]] [[tool cmd="touch %s" as=%s]] [[text %q]]`, made, name, end)
					town.awaitDone(i + 1)
					town.await(end)
					if _, err := os.Stat(filepath.Join(town.cfg.Projects.DefaultDir, made)); err == nil {
						t.Errorf("in %s the shell ran", mode)
					}
				}
				if run != cli.Live {
					return
				}
				// Gemini's session contains calls of an unknown tool, which the API rejects.
				if agent == "gemini" {
					town.say("/new")
					town.await("New session")
				}
				town.stop()
				town.cfg.Permissions.DeniedTools, town.cfg.Permissions.Mode = nil, "bypass"
				town.start()
				town.say("/permissions bypass")
				town.press("Yes, bypass everything")
				town.say(`[[start]] [[tool cmd="touch made" as=%s]] [[text "it is over"]]`, name)
				town.await("it is over")
				awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "made"))
			})
		}
	}
}

// ductor rejects a list that it cannot enforce with an agent: at its start if the list is configured, otherwise at
// the start of the turn.
func TestAListThatCannotBeHeldIsRefused(t *testing.T) {
	town := surroundings(t, nil)
	town.agent = "codex"
	t.Setenv("XDG_CONFIG_HOME", "")
	town.userConfig("[permissions]\n", "[permissions]\ndenied_tools = [\"edit\"]\n")
	code, _, stderr := runDuctor(t, "run")
	if code != exitConfig || !strings.Contains(stderr,
		"permissions: a list of tools cannot be held here: Codex cannot be kept from edits in bypass") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The first prompt of a session in a project contains the project's files. Later prompts do not repeat them.
func TestARealAgentBeginsWithFilesOfItsProject(t *testing.T) {
	town, api := realTown(t, "claude", func(c *config.Config) {
		dir := c.Projects.DefaultDir
		if err := os.WriteFile(filepath.Join(dir, "RULES.md"), []byte("Sell nothing.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": {Dir: dir, Context: []string{"RULES.md"}}}
	})
	for i, want := range []int{1, 0} {
		town.say(`[[text "answer %d"]]`, i)
		town.await(fmt.Sprintf("answer %d", i))
		prompts := api.Prompts()
		if got := strings.Count(prompts[len(prompts)-1].Prompt, "Sell nothing."); got != want {
			t.Errorf("prompt %d has the file %d times, want %d", i, got, want)
		}
	}
}

// If a chat sets the only tools, the shell never runs, and edits ask as usual. Codex rejects the list.
func TestTheRealAgentsKeepToTheOnlyTools(t *testing.T) {
	realagent.LongOnly(t)
	for agent, name := range shellTools() {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
			work := town.cfg.Projects.DefaultDir
			town.say("/permissions tools only read edit")
			town.await("only read, edit")
			if agent == "codex" {
				town.say(`[[text "never said"]]`)
				town.await("Codex cannot be told which tools there are, only which not")
				return
			}
			town.say(`[[start]] [[write path=%s text=x]] [[text "the edit is over"]]`,
				filepath.Join(work, "edited.txt"))
			town.press("✅ Allow once")
			town.await("the edit is over")
			awaitFile(t, filepath.Join(work, "edited.txt"))

			town.say("/permissions bypass")
			town.press("Yes, bypass everything")
			town.await("bypass: never asks")
			town.say(`[[start]] [[tool cmd="touch made" as=%s]] [[text "the shell is over"]]`, name)
			town.await("the shell is over")
			if _, err := os.Stat(filepath.Join(work, "made")); err == nil {
				t.Error("the shell ran")
			}
		})
	}
}
