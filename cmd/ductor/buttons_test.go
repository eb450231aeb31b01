package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

const tableAnswer = `[[text "| Animal | Legs |\n|---|--:|\n| Zebra42 | 4 |"]]`

// photos returns the pictures in a chat.
func photos(chat *telegram.Chat) (all []telegram.Message) {
	for _, m := range chat.History() {
		if m.Media != nil && m.Media.Kind == "photo" {
			all = append(all, m)
		}
	}
	return all
}

// The table of an answer is sent as a picture once in each theme, also after a restart.
func TestTheTablesOfAnAnswer(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.say(tableAnswer)
	town.await("Zebra42")
	card := town.awaitButton("🖼 Table, light")
	town.pressOn(card, "🖼 Table, light")
	picture := town.awaitMessage(func(m telegram.Message) bool { return m.Media != nil && m.Media.Kind == "photo" })
	if picture.ReplyTo != card.ID {
		t.Errorf("the picture replies to %d, not %d", picture.ReplyTo, card.ID)
	}
	town.stop()
	town.start()
	if a := town.pressOn(card, "🖼 Table, light"); a.Text != "The picture is in the chat already." {
		t.Errorf("the second press is answered with %q", a.Text)
	}
	if n := len(photos(town.chat)); n != 1 {
		t.Errorf("%d pictures", n)
	}
}

// After notify.silence, a silent agent causes one notice, which disappears when the agent continues.
func TestASilentAgentIsNoticed(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode, c.Notify.Silence = "bypass", time.Second })
	dir := town.cfg.Projects.DefaultDir
	town.say(
		`[[start]] [[text "working"]] [[tool cmd="touch began; until test -e go; do sleep 0.1; done"]] [[text "it goes on"]]`)
	awaitFile(t, filepath.Join(dir, "began"))
	notice := town.awaitMessage(func(m telegram.Message) bool { // its tool may begin after the notice
		return strings.Contains(m.Text, "has been silent for") && strings.Contains(m.Text, "Running: ")
	})
	if a := town.pressOn(notice, "⏳ Wait"); a.Text != "OK, I'll wait." {
		t.Errorf("the press is answered with %q", a.Text)
	}
	town.makeFile("go", nil)
	town.await("it goes on")
	eventually(t, "the notice to go", func() bool { return town.shown("has been silent for") == 0 })
}
