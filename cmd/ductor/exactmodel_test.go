package main

import (
	"fmt"
	"strings"
	"testing"

	"ductor/cli/naming"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// Any exact ID behind an agent's name can be chosen, also by an alias and in the configuration, and reaches the agent
// unchanged. A mistyped name has a button.
func TestExactModelIDs(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Agents.Claude.Model = "claude-haiku-4-5-20251001"
		c.Models = map[string]naming.Alias{"old": {Use: "claude/claude-opus-4-1 low"}}
	})
	asked := 0
	check := func(model string) {
		t.Helper()
		asked++
		answer := fmt.Sprint("answer ", asked)
		town.say("[[text %q]]", answer)
		town.awaitMessage(func(m telegram.Message) bool {
			return strings.Contains(m.Text, answer) && strings.Contains(m.Text, "\n"+model+" · ")
		})
	}
	check("claude-haiku-4-5-20251001")
	for name, model := range map[string]string{
		"claude-opus-4-8": "claude-opus-4-8", "claude/claude-sonnet-5": "claude-sonnet-5",
		"claude-opus-4-7 high": "claude-opus-4-7", "old": "claude-opus-4-1",
	} {
		town.awaitAfter(town.say("/model %s", name), "Your next message goes to Claude · "+model)
		check(model)
	}
	town.say("@claude/claude-opus-4-5 [[text \"only this\"]]")
	town.await("claude-opus-4-5")
	town.say("/consult claude/claude-opus-4-6 [[text \"an advice\"]]")
	town.await("an advice")
	town.say("/model sonet")
	mistyped := town.awaitButton("claude/sonnet")
	if !strings.Contains(mistyped.Text, "Did you mean sonnet?") {
		t.Errorf("it says %q", mistyped.Text)
	}
	town.pressOn(mistyped, "claude/sonnet")
	town.await("Your next message goes to Claude · sonnet")
	check("claude-sonnet-5")
}

// A model that follows its agent without a slash is an error with its line.
func TestAnAliasNeedsASlash(t *testing.T) {
	town := surroundings(t, nil)
	for use, want := range map[string]string{
		"claude sonnet": `models.fast.use: "sonnet" is no effort; a model follows its agent after a slash, ` +
			`such as claude/sonnet`,
		"claude/opus high 5": `models.fast.use: "5" is too much`,
		"claude high":        "", "claude/sonnet": "", "claude/claude-opus-4-8 xhigh": "",
	} {
		path := town.userConfig("[log]\n", "[models.fast]\nuse = \""+use+"\"\n[log]\n")
		_, stdout, stderr := runDuctor(t, "doctor", "-c", path)
		out := stdout + stderr
		if want == "" && strings.Contains(out, "models.fast") || !strings.Contains(out, want) {
			t.Errorf("of %q it says %s", use, out)
		}
		if want != "" && !strings.Contains(out, "config.toml:") {
			t.Errorf("of %q it names no line: %s", use, out)
		}
	}
}
