package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// buttonData is what the button of a message carries.
func (town *town) buttonData(m telegram.Message, name string) string {
	town.t.Helper()
	for _, row := range m.Keyboard {
		for _, b := range row {
			if b.Text == name {
				return b.Data
			}
		}
	}
	town.t.Fatalf("no button %q: %+v", name, m.Keyboard)
	return ""
}

// The Stop button of a running card ends its turn and no other: what waits runs next. Pressed once more, it changes nothing and
// says so. An answer replies to its prompt where prompts waited.
func TestTheStopButtonEndsOneTurn(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.say(`[[start]] [[text "working"]] [[tool cmd="touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "started"))
	waiting := town.say(`[[text "the second ran"]]`)
	town.await("next in line")
	card := town.awaitButton("⏹ Stop")
	data := town.buttonData(card, "⏹ Stop")
	if a := town.pressOn(card, "⏹ Stop"); a.Text != "Stopping…" {
		t.Errorf("the press is answered with %q", a.Text)
	}
	town.await("Aborted")
	second := town.await("the second ran")
	if second.ReplyTo != waiting.ID {
		t.Errorf("the answer to a prompt that waited replies to %d, not %d", second.ReplyTo, waiting.ID)
	}
	town.awaitNoButton("⏹ Stop")
	a, err := town.chat.Person().TapData(card, data).Answer(town.soon())
	if err != nil || a.Text != "Too late: it has ended." {
		t.Errorf("a press on an old card is answered with %q: %v", a.Text, err)
	}
}

// A turn that takes longer than notify.long ends with a message that replies to the prompt. /notify never does without.
func TestALongTurnAnnouncesItsEnd(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass"; c.Notify.Mode = "always" })
	prompt := town.say(`[[start]] [[text "working"]] [[tool cmd="sleep 11"]] [[text "the work is over"]]`)
	end := town.await("✅ Done · ")
	if end.ReplyTo != prompt.ID {
		t.Errorf("%q replies to %d, not %d", end.Text, end.ReplyTo, prompt.ID)
	}
	town.say("/notify never")
	town.await("Set. A message that announces the end: no turn")
	town.say("/status")
	town.await("Nothing is running")
	town.say(`[[start]] [[text "again"]] [[tool cmd="sleep 11"]] [[text "the work is over twice"]]`)
	town.await("the work is over twice")
	town.say("/status")
	time.Sleep(time.Second)
	for _, m := range town.chat.View().FromBot() {
		if m.ID > end.ID && strings.Contains(m.Text, "✅ Done") {
			t.Errorf("the end is announced: %q", m.Text)
		}
	}
}
