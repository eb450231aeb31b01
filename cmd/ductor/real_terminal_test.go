package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/terminal"
)

// hookedClaude installs ductor's hooks for the real Claude Code, and the settings of a user who has answered its
// first questions.
func hookedClaude(t *testing.T, town *town) {
	t.Helper()
	home := os.Getenv("HOME")
	key := realagent.Key
	known := fmt.Sprintf(
		`{"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": {"approved": [%q], "rejected": []},
		"projects": {%q: {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}}`,
		key[max(0, len(key)-20):], town.cfg.Projects.DefaultDir)
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := terminal.Machine{
		Home: home, Getenv: func(string) string { return "" }, Program: clitest.Program(t), State: town.cfg.Storage.Dir,
	}.Installed()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := f.Write(); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitScreen waits until the screen shows a text, ignoring line breaks. A CLI only prints the changes of the screen.
func (a *atTerminal) awaitScreen(part string) {
	a.t.Helper()
	words := func(text string) string { return strings.Join(strings.Fields(text), "") }
	for until := time.Now().Add(patience); !strings.Contains(words(a.screen.String()),
		words(part)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			a.t.Fatalf("%q is not shown:\n%s", part, a.screen)
		}
	}
}

func (a *atTerminal) types(keys string) {
	a.t.Helper()
	if _, err := a.tty.WriteString(keys); err != nil {
		a.t.Fatal(err)
	}
}

// sendPrompt types a prompt and sends it. last is the last word to appear on the screen.
func (a *atTerminal) sendPrompt(text, last string) {
	a.t.Helper()
	a.types(text + " " + last)
	a.awaitScreen(last)
	a.types("\r")
}

// allowRequest allows Claude's request, which creates a file. Claude ignores keys that are pressed faster than a user can
// read.
func (a *atTerminal) allowRequest(file string) {
	a.t.Helper()
	a.awaitScreen("Do you want to proceed?")
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		a.types("1")
	}
	a.t.Fatalf("%s is not there:\n%s", file, a.screen)
}

// Real Claude Code runs in a user's terminal and asks on the phone through its hook. It is allowed and denied there,
// or answered first in the terminal, and a restart of ductor in between loses nothing. It reports its end, and one
// press continues the session in the chat. While ductor is stopped or the user is at the terminal, it asks there as
// usual.
func TestRealClaudeInATerminalAsksOnThePhone(t *testing.T) {
	realagent.LongOnly(t)
	town, api := realSurroundings(t, "claude", func(c *config.Config) { c.Permissions.Mode = "ask" })
	hookedClaude(t, town)
	town.start()
	work := town.cfg.Projects.DefaultDir
	town.say("/terminal on")
	town.await("Agents in your terminals now ask and report here")

	cmd := exec.Command(town.cfg.Agents.Claude.Path, "--permission-mode", "default") // Claude's default is auto
	cmd.Dir, cmd.Env = work, append(os.Environ(), "TERM=xterm-256color")
	a := startCommand(t, cmd)
	a.awaitScreen("? for shortcuts")

	a.sendPrompt(`[[tool cmd="touch allowed.txt"]] [[text "It is allowed."]]`, "prompt-one")
	card := town.await("touch allowed.txt")
	if !strings.Contains(card.Text, "May Claude run this command?") ||
		!strings.Contains(card.Text, "In your terminal, in "+work) {
		t.Errorf("the card says %q", card.Text)
	}
	town.pressOn(card, "✅ Allow once")
	awaitFile(t, filepath.Join(work, "allowed.txt"))
	if m := town.await("It is allowed."); !strings.Contains(m.Text, "Claude has finished in the terminal") {
		t.Errorf("the report says %q", m.Text)
	}

	a.sendPrompt(`[[tool cmd="touch denied.txt"]] [[text "It is denied."]]`, "prompt-two")
	town.pressOn(town.await("touch denied.txt"), "⛔ Deny")
	town.await("It is denied.")
	if _, err := os.Stat(filepath.Join(work, "denied.txt")); err == nil {
		t.Error("what was denied was done")
	}

	a.sendPrompt(`[[tool cmd="touch here.txt"]] [[text "The terminal was quicker."]]`, "prompt-three")
	town.await("touch here.txt")
	a.allowRequest(filepath.Join(work, "here.txt"))
	town.await("No longer needed")
	report := town.await("The terminal was quicker.")

	a.sendPrompt(`[[tool cmd="touch outlived.txt"]] [[text "It outlived ductor."]]`, "prompt-restart")
	card = town.await("touch outlived.txt")
	town.stop()
	town.start()
	town.pressOn(card, "✅ Allow once")
	awaitFile(t, filepath.Join(work, "outlived.txt"))
	town.await("It outlived ductor.")

	town.stop()
	a.sendPrompt(`[[tool cmd="touch alone.txt"]] [[text "As usual."]]`, "prompt-four")
	a.allowRequest(filepath.Join(work, "alone.txt"))
	a.awaitScreen("● As usual.") // matches the answer, not the prompt

	town.start()
	town.say("/terminal off")
	town.await("Agents in your terminals now ask there")
	a.sendPrompt(`[[tool cmd="touch present.txt"]] [[text "As ever."]]`, "prompt-five")
	a.allowRequest(filepath.Join(work, "present.txt"))
	a.awaitScreen("● As ever.")
	checkNotShown(t, town.chat, "alone.txt")
	checkNotShown(t, town.chat, "present.txt")

	// Stop ductor before /terminal on, so that the end of this turn is not reported.
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	a.exit()
	town.say("/terminal on")
	town.pressOn(report, "📲 Continue here")
	town.await("continues it with your next message")
	town.say(`taken over [[start]] [[history]]`)
	if m := town.awaitDone(1); !strings.Contains(m.Text, "prompt-five") {
		t.Errorf("in the chat it knows %q", m.Text)
	}
	var reports []string
	for _, m := range town.chat.Messages() {
		// ductor may have returned when Claude's hook reports the end of a turn that began while it was down.
		if strings.HasPrefix(m.Text, "💻 Claude has finished in the terminal") &&
			!strings.Contains(m.Text, "As usual.") {
			reports = append(reports, m.Text)
		}
	}
	if len(reports) != 4 { // reports stay after their button was pressed, and ductor's own agents send none
		t.Errorf("reports of 4 turns: %q", reports)
	}
	if len(api.Prompts()) == 0 {
		t.Error("the model was not asked")
	}
}
