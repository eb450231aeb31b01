package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/internal/config"
)

// optionsTown returns a town whose only agent is the scripted agent with these parts of the Agent Client Protocol; see
// package agent. Its own modes let everything through. own holds it, and describes the settings of projects for it.
func optionsTown(t *testing.T, words string, mode cli.PermissionMode, own acp.Settings) *town {
	t.Helper()
	t.Setenv("SIM_ACP", words)
	t.Setenv("SIM_ACP_NAME", "some agent")
	return newTown(t, func(c *config.Config) {
		c.Agents.ACP = overACP("gem", c.Agents.Gemini.Path, "SIM_ACP_NAME", "SIM_ACP")
		one := c.Agents.ACP["gem"]
		one.Holds, one.Project = own.Holds, own.Project
		c.Agents.ACP["gem"] = one
		c.Agents.Default, c.Agents.Fallback = "gem", nil
		c.Agents.Claude.Enabled, c.Agents.Codex.Enabled = false, false
		c.Agents.Gemini.Enabled, c.Agents.Copilot.Enabled = false, false
		c.Permissions.Mode = mode
	})
}

// The user chooses a model and its effort of an agent that offers both as options, and the agent uses them. Its title
// becomes the title of the session. A session that it began in a terminal continues in the chat.
func TestTheOptionsOfAnAgentAreButtons(t *testing.T) {
	town := optionsTown(t, "options list title", cli.Auto, acp.Settings{})
	town.say("/model")
	town.pressOn(town.awaitButton("Model 2"), "✓ Model 1")
	town.pressOn(town.awaitButton("medium"), "medium")
	town.await("Gem · model-1 · medium")
	said := town.say(`[[start]]brown potatoes [[text "boiled"]]`)
	town.awaitAfter(said, "boiled")
	if m := town.awaitDone(1); !strings.Contains(m.Text, "model-1") {
		t.Errorf("the answer is by %q", m.Text)
	}
	town.say("/sessions")
	town.await("About brown potatoes")

	begin := exec.Command(town.cfg.Agents.Gemini.Path, "--prompt="+`begun in a terminal [[text "noted"]]`)
	begin.Dir = town.cfg.Projects.DefaultDir
	// ductor gives the agent none of its own variables, so this one stores its sessions in HOME.
	begin.Env = append(os.Environ(), "GEMINI_CLI_TRUST_WORKSPACE=true", "DUCTOR_SIM_HOME=")
	if out, err := begin.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	town.press("💻 From the terminal")
	list := town.await("Terminal sessions")
	if !strings.Contains(list.Text, "“About begun in”") || strings.Contains(list.Text, "potatoes") {
		t.Errorf("the list is %q", list.Text)
	}
	town.press(list.Keyboard[0][0].Text)
	town.await("continues it with your next message")
	said = town.say(`continued in the chat [[start]] [[history]]`)
	town.awaitAfter(said, "begun in a terminal")
}

// A user is not offered ask for an agent that does not ask, and a turn in it is refused. The owner can name a setting
// that holds the agent.
func TestAModeThatNothingHolds(t *testing.T) {
	town := optionsTown(t, "options", cli.Ask, acp.Settings{})
	for range 2 { // the second one is no reason for a new session
		said := town.say(`[[tool "touch written"]][[text "well"]]`)
		m := town.awaitAfter(said, "Gem was not started: ask is not available")
		if !m.HasButton("▶️ Run in auto") || m.HasButton("🌱 Start fresh") || strings.Contains(m.Text, "second time") {
			t.Errorf("it says %q, with %v", m.Text, m.Keyboard)
		}
	}
	town.awaitAfter(town.say("/model gem"), "can't work in this mode")
	town.await("nothing makes this agent ask")
	town.press("▶️ Run in auto")
	town.await("well")
	town.say("/permissions")
	m := town.await("Here: not available")
	if m.HasButton("ask") || m.HasButton("accept-edits") || !m.HasButton("plan") {
		t.Errorf("it offers %v", m.Keyboard)
	}
	town.say("/permissions auto")
	said := town.say(`[[tool "touch written"]][[text "well"]]`)
	town.awaitAfter(said, "well")

	held := optionsTown(t, "options", cli.Ask, acp.Settings{Holds: map[cli.PermissionMode]acp.Holding{
		cli.Ask: {Env: map[string]string{"SIM_PERMISSION": "ask"}},
	}})
	held.say(`[[tool "touch written"]][[text "it is written"]]`)
	held.pressOn(held.awaitButton("✅ Allow once"), "✅ Allow once")
	held.awaitDone(1)
}

// A consultation that nothing holds to plan names what helps: /permissions does not count for it.
func TestAConsultationThatNothingHolds(t *testing.T) {
	town, _ := lineTown(t)
	m := town.awaitAfter(town.say("/consult lines Which design?"), "nothing keeps this agent from changing files")
	if !strings.Contains(m.Text, "Use another agent for this") || strings.Contains(m.Text, "/permissions") {
		t.Errorf("it says %q", m.Text)
	}
}

// An agent that cannot begin is reported with the reason.
func TestAnAgentThatBeginsWrongly(t *testing.T) {
	for words, want := range map[string]string{"version=2": "update ductor", "die": "it lacks a library"} {
		town := optionsTown(t, words, cli.Auto, acp.Settings{})
		town.say("hello")
		town.await(want)
	}
}
