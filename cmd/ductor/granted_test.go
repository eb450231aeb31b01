package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/orchestrator"
)

// A bypass that was chosen in a sandboxed project ends when /project selects one without a sandbox: the next command
// waits for an approval.
func TestRightsOfASandboxDoNotFollowToTheMachine(t *testing.T) {
	realagent.LongOnly(t)
	host := engineHost(t)
	var box, api string
	town := newTown(t, func(c *config.Config) {
		boxes(t, host, c)
		box, api = filepath.Join(c.Projects.DefaultDir, "box"), filepath.Join(c.Projects.DefaultDir, "api")
		if err := errors.Join(os.Mkdir(box, 0o755), os.Mkdir(api, 0o755)); err != nil {
			t.Fatal(err)
		}
		c.Sandbox.Projects = map[string]config.SandboxProject{"box": {Dir: box, Settings: c.Sandbox.Settings}}
		c.Sandbox.Mode = orchestrator.SandboxOff
		c.Projects.DefaultDir = box
		c.Projects.Named = map[string]orchestrator.ProjectPolicy{"api": {Dir: api}, "box": {Dir: box}}
		c.Permissions.Mode = "ask"
	})
	town.say("/permissions bypass")
	town.press("Yes, bypass everything")
	town.say(`[[start]] [[ask cmd="touch inside"]] [[text "that was inside"]]`)
	if m := town.awaitAnswer("that was inside"); !strings.Contains(m.Text, "in the sandbox box") {
		t.Errorf("the card does not name the sandbox: %q", m.Text)
	}
	town.say("/project api")
	if m := town.await("From now on the agent works in"); !strings.Contains(m.Text, "on this machine") ||
		!strings.Contains(m.Text, "bypass doesn't count") {
		t.Errorf("the answer: %q", m.Text)
	}
	town.say(`[[start]] [[ask cmd="touch outside"]] [[text "that was outside"]]`)
	card := town.awaitButton("⛔ Deny")
	if _, err := os.Stat(filepath.Join(api, "outside")); err == nil {
		t.Error("the command ran unasked")
	}
	town.pressOn(card, "⛔ Deny")
	if m := town.awaitAnswer("that was outside"); !strings.Contains(m.Text, "on this machine") ||
		!strings.Contains(m.Text, "bypass was chosen for another folder or sandbox") {
		t.Errorf("the card: %q", m.Text)
	}
}
