package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// awaitButtons waits for a message that has exactly these buttons.
func (town *town) awaitButtons(names ...string) telegram.Message {
	town.t.Helper()
	return town.awaitMessage(func(m telegram.Message) bool {
		var has []string
		for _, row := range m.Keyboard {
			for _, b := range row {
				has = append(has, b.Text)
			}
		}
		return slices.Equal(has, names)
	})
}

// runAtButton returns the button that runs a prompt later.
func runAtButton(m telegram.Message) (name string) {
	for _, row := range m.Keyboard {
		for _, b := range row {
			if strings.HasPrefix(b.Text, "⏰ Run at ") {
				return b.Text
			}
		}
	}
	return ""
}

// At a usage limit, the chat offers to run the prompt when the limit ends, with a job.
func TestALimitedPromptRunsWhenTheLimitEnds(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	for wait := 3; ; wait *= 2 { // on a slow machine the limit ends before the press
		reason := fmt.Sprintf("Try again in %d seconds", wait)
		town.say(`[[error 429 delay=1ms message="%s."]]`, reason)
		card := town.awaitMessage(func(m telegram.Message) bool {
			return runAtButton(m) != "" && strings.Contains(m.Text, reason)
		})
		if !strings.Contains(card.Text, "Claude has reached its usage limit until ") {
			t.Errorf("the card says %q", card.Text)
		}
		if !card.HasButton("🤝 Go on with Codex") || !card.HasButton("✖ Cancel") || card.HasButton("🔁 Run again") {
			t.Errorf("the buttons are %+v", card.Keyboard)
		}
		if a := town.pressOn(card, runAtButton(card)); strings.HasPrefix(a.Text, "It runs at ") {
			break
		} else if wait > 60 {
			t.Fatalf("the press is answered with %q", a.Text)
		}
		town.awaitMessage(func(m telegram.Message) bool { // the press has run the prompt
			return m.ID > card.ID && strings.Contains(m.Text, reason)
		})
		town.awaitIdle()
	}
	// The job's prompt reaches the limit too, and gets no offer of another job.
	town.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "⏰") && strings.Contains(m.Text, "usage limit") && !m.HasButton("⏹ Stop")
	})
}

// "Continue with another agent" runs the prompt there, and the conversation's following prompts.
func TestALimitedPromptGoesOnWithAnotherAgent(t *testing.T) {
	town := newTown(t, nil)
	town.say(`[[text "first"]]`)
	town.awaitDone(1)
	town.say(`[[error 429 delay=1ms message="Try again in 2 hours."]]`)
	card := town.awaitButton("🤝 Go on with Codex")
	data := town.buttonData(card, "🤝 Go on with Codex")
	town.press("🤝 Go on with Codex")
	town.await("Codex has reached its usage limit")
	if a, err := town.chat.Person().TapEarly(card, data).Answer(town.soon()); err != nil ||
		!strings.Contains(a.Text, "already") {
		t.Errorf("a second press is answered with %q: %v", a.Text, err)
	}
	town.say("/status")
	town.await("Codex · ")
}

// Cancel removes the buttons, and nothing runs.
func TestALimitedPromptIsCancelled(t *testing.T) {
	town := newTown(t, nil)
	town.say(`[[error 429 delay=1ms message="Try again in 2 hours."]]`)
	town.awaitButton("✖ Cancel")
	if a := town.press("✖ Cancel"); a.Text != "OK, it won't run again." {
		t.Errorf("the press is answered with %q", a.Text)
	}
	town.awaitNoButton("✖ Cancel")
}

// A prompt that waits for the end of a limit can still go to another agent. Then its job is gone, so it runs once.
func TestAPromptThatWaitsForALimitGoesOnWithAnotherAgent(t *testing.T) {
	town := newTown(t, nil)
	town.say(`[[error 429 delay=1ms message="Try again in 2 hours."]]`)
	card := town.awaitMessage(func(m telegram.Message) bool { return runAtButton(m) != "" })
	other := town.buttonData(card, "🤝 Go on with Codex")
	town.pressOn(card, runAtButton(card))
	town.say("/cron")
	town.await("once, on")
	a, err := town.chat.Person().TapEarly(card, other).Answer(town.soon())
	if err != nil || a.Text != "Running again." {
		t.Errorf("the press is answered with %q: %v", a.Text, err)
	}
	town.await("Codex has reached its usage limit")
	town.say("/cron")
	town.await("There are no jobs")
}

// If configured, a job runs the prompt without a press, and its buttons cancel that or choose another agent, or another
// agent runs it at once.
func TestALimitIsWaitedForOrAvoidedAsConfigured(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Recovery.Limits = "wait" })
	town.say(`[[error 429 delay=1ms message="Try again in 2 hours."]]`)
	if m := town.awaitButtons("🤝 Go on with Codex", "✖ Cancel"); !strings.Contains(m.Text, "It runs at ") {
		t.Errorf("the card says %q", m.Text)
	}
	town.say("/cron")
	town.await("once, on")
	town.press("✖ Cancel")
	town.say("/cron")
	town.await("There are no jobs")

	town = newTown(t, func(c *config.Config) { c.Recovery.Limits = "handoff" })
	town.say(`[[error 429 times=11 delay=1ms]] [[text "the substitute answers"]]`)
	if m := town.await("usage limit"); !strings.HasPrefix(m.Text,
		"🔁 Codex answers. Claude has reached its usage limit") {
		t.Errorf("the card says %q", m.Text)
	}
}

// A crash after a usage limit counts as a crash. The limit does not count as a pause of an agent that fails often,
// which would send every chat to another agent until the limit ends.
func TestACrashAfterALimitRedirectsNoChat(t *testing.T) {
	town := newTown(t, nil)
	town.say(`[[error 429 delay=1ms message="Try again in 2 hours."]]`)
	town.awaitButton("✖ Cancel")
	town.say(`[[start]] [[text "it begins"]] [[crash 3]]`)
	town.await("ended unexpectedly")
	town.say(`[[text "who answers"]]`)
	if m := town.awaitAnswer("who answers"); strings.Contains(m.Text, "Codex") {
		t.Errorf("the card says %q", m.Text)
	}
	if m := town.awaitIdle(); strings.Contains(m.Text, "in a row") {
		t.Errorf("the status says %q", m.Text)
	}
}

// A prompt that the user schedules for the end of a limit has the rights of its turn: here it edits without asking.
func TestAPromptThatRunsLaterKeepsItsRights(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	file := filepath.Join(town.cfg.Projects.DefaultDir, "later")
	town.say("/permissions accept-edits")
	town.await("accept-edits")
	town.say(`[[start]] [[write path=later text=x]] [[error 429 times=11 delay=1ms message="Try again in 2 seconds."]]`)
	card := town.awaitMessage(func(m telegram.Message) bool { return runAtButton(m) != "" })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	town.pressOn(card, runAtButton(card))
	awaitFile(t, file) // without an approval
}
