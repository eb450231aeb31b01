package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// plant writes the settings of a project into a directory.
func plant(t *testing.T, dir, text string) {
	t.Helper()
	file := filepath.Join(dir, ".sim", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitSettings waits for the question about settings of a project that shows part.
func (town *town) awaitSettings(part string) telegram.Message {
	town.t.Helper()
	return town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("Without them") && strings.Contains(m.Text, part)
	})
}

// An agent that cannot ignore the settings of a project runs no turn until its user has allowed exactly these settings:
// no turn of the chat, of a webhook or of a consultation. Settings above the directory count too. Settings that are a
// link out of the project cannot be allowed.
func TestAttackTheSettingsOfAProjectForAnACPAgent(t *testing.T) {
	const refused = "cannot work without them"
	asks := acp.Holding{Env: map[string]string{"SIM_PERMISSION": "ask"}}
	addr := unusedAddr(t)
	t.Setenv("SIM_ACP", "options")
	w := &webhookTown{webhookDaemon: &webhookDaemon{addr: addr, client: &http.Client{Timeout: patience}}}
	t.Cleanup(w.client.CloseIdleConnections)
	w.town = surroundings(t, func(c *config.Config) {
		c.Agents.ACP = overACP("gem", c.Agents.Gemini.Path, "SIM_ACP")
		one := c.Agents.ACP["gem"]
		one.Holds = map[cli.PermissionMode]acp.Holding{cli.Ask: asks, cli.Plan: asks}
		one.Project = acp.Project{Files: []string{".sim/"}}
		c.Agents.ACP["gem"] = one
		c.Agents.Default, c.Agents.Fallback, c.Permissions.Mode = "gem", nil, cli.Ask
		c.Webhooks.Listen = addr
		c.Webhooks.Hooks = map[string]webhook.HookSettings{
			"deploy": unattended(`[[text "the run ended"]]`, "own", orchestrator.Rights{}),
		}
	})
	dir := w.cfg.Projects.DefaultDir
	w.start()
	w.awaitAfter(w.say(`[[text "nothing is set"]]`), "nothing is set")

	plant(t, filepath.Dir(dir), `{"allow": "one"}`) // while its process lives
	said := w.say(`[[text "never"]]`)
	w.pressOn(w.awaitSettings("allow: one"), "Without them")
	w.awaitAfter(said, refused)
	w.awaitAfter(w.say(`[[text "never"]]`), refused) // without another question
	w.awaitAfter(w.say(`/consult gem Is it so? [[text "never"]]`), refused)
	said = w.say("/new")
	w.awaitAfter(said, "New session")
	said = w.say(`[[text "with them"]]`)
	w.pressOn(w.awaitSettings("allow: one"), "✅ Use them")
	w.awaitAfter(said, "with them")
	w.awaitAfter(w.say(`[[text "without a question"]]`), "without a question")
	said = w.say("/status")
	w.hook("deploy")
	w.awaitAfter(said, refused)

	plant(t, filepath.Dir(dir), `{"allow": "two"}`)
	said = w.say(`[[text "never"]]`)
	w.pressOn(w.awaitSettings("allow: two"), "Without them")
	w.awaitAfter(said, refused)

	if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), ".sim")); err != nil {
		t.Fatal(err)
	}
	w.awaitAfter(w.say(`[[text "nothing is set again"]]`), "nothing is set again")
	elsewhere := t.TempDir()
	plant(t, elsewhere, `{"allow": "three"}`)
	if err := os.Symlink(filepath.Join(elsewhere, ".sim"), filepath.Join(dir, ".sim")); err != nil {
		t.Fatal(err)
	}
	said = w.say(`[[text "never"]]`)
	card := w.awaitSettings("so you can't allow it")
	if card.HasButton("✅ Use them") {
		t.Errorf("settings outside of the project can be allowed: %v", card.Keyboard)
	}
	w.pressOn(card, "Without them")
	w.awaitAfter(said, refused)
	if prompts := promptsOf(t, "gemini"); strings.Contains(strings.Join(prompts, "\n"), "never") {
		t.Errorf("the agent got %q", prompts)
	}
}

// An agent that can ignore the settings of a project does so until its user has allowed them.
func TestAnACPAgentIgnoresTheSettingsOfAProject(t *testing.T) {
	town := optionsTown(t, "options", cli.Ask, acp.Settings{
		Holds: map[cli.PermissionMode]acp.Holding{cli.Ask: {Mode: "build"}},
		Project: acp.Project{
			Files: []string{".sim/"}, Env: map[string]string{"SIM_PERMISSION": "ask"},
		},
	})
	dir := town.cfg.Projects.DefaultDir
	plant(t, dir, `{"allow": "one"}`)
	town.say(`[[tool "touch written"]][[text "it is written"]]`)
	town.pressOn(town.awaitSettings("allow: one"), "Without them")
	town.pressOn(town.awaitButton("✅ Allow once"), "⛔ Deny")
	town.awaitDone(1)
	if _, err := os.Stat(filepath.Join(dir, "written")); err == nil {
		t.Error("it wrote without an approval")
	}
	town.awaitAfter(town.say("/new"), "New session")
	said := town.say(`[[tool "touch written"]][[text "it is written"]]`)
	town.pressOn(town.awaitSettings("allow: one"), "✅ Use them")
	town.awaitAfter(said, "it is written")
	awaitFile(t, filepath.Join(dir, "written"))
}

// A wrapper such as npx prefers the program of the directory in which it starts. A project that brings such a program
// does not replace the agent, and the agent works in the project nevertheless.
func TestAProjectDoesNotReplaceAnAgentBehindAWrapper(t *testing.T) {
	wrapper := filepath.Join(t.TempDir(), "npx")
	const mine = "node_modules/.bin/gem"
	town := surroundings(t, func(c *config.Config) {
		script := "#!/bin/sh\n[ -x " + mine + " ] && exec " + mine + "\nexec '" + c.Agents.Gemini.Path + "' \"$@\"\n"
		if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		c.Agents.Default, c.Agents.Fallback, c.Permissions.Mode = "gem", nil, cli.Bypass
		c.Agents.ACP = overACP("gem", wrapper)
	})
	project := town.cfg.Projects.DefaultDir
	ran := filepath.Join(t.TempDir(), "ran")
	if err := os.MkdirAll(filepath.Join(project, filepath.Dir(mine)), 0o700); err != nil {
		t.Fatal(err)
	}
	theirs := "#!/bin/sh\ntouch '" + ran + "'\nexec '" + town.cfg.Agents.Gemini.Path + "' --acp\n"
	if err := os.WriteFile(filepath.Join(project, mine), []byte(theirs), 0o700); err != nil {
		t.Fatal(err)
	}
	town.start()
	town.awaitAfter(town.say(`[[tool cmd="touch here"]] [[text "the agent answers"]]`), "the agent answers")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program of the project ran as the agent")
	}
	awaitFile(t, filepath.Join(project, "here"))
}
