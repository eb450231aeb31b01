package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

const tableAnswer = `[[text "| Animal | Legs |\n|---|--:|\n| Zebra42 | 4 |"]]`

// photos lists the pictures that a chat has.
func photos(chat *telegram.Chat) (all []telegram.Message) {
	for _, m := range chat.History() {
		if m.Media != nil && m.Media.Kind == "photo" {
			all = append(all, m)
		}
	}
	return all
}

// The table of an answer comes as a picture, once in each theme, also after a restart.
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

// An agent that is silent for notify.silence gets one notice, which goes when the agent goes on.
func TestASilentAgentIsNoticed(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode, c.Notify.Silence = "bypass", time.Second })
	dir := town.cfg.Projects.DefaultDir
	town.say(`[[start]] [[text "working"]] [[tool cmd="touch began; until test -e go; do sleep 0.1; done"]] [[text "it goes on"]]`)
	awaitFile(t, filepath.Join(dir, "began"))
	notice := town.await("has been silent for")
	if !strings.Contains(notice.Text, "Running: ") {
		t.Errorf("the notice says %q", notice.Text)
	}
	if a := town.pressOn(notice, "⏳ Wait"); a.Text != "I wait for it." {
		t.Errorf("the press is answered with %q", a.Text)
	}
	town.makeFile("go", nil)
	town.await("it goes on")
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "has been silent for") {
			t.Errorf("the notice is still there: %q", m.Text)
		}
	}
}

// Any sequence of presses on the buttons below answers and on screens, by any user and over restarts, runs no prompt, sends no
// picture twice and shows nothing of another chat.
func TestAnySequenceOfPressesOnButtons(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode = "bypass"
		c.Telegram.AllowedUsers = []int64{owner, neighbour}
	})
	other := town.srv.Private(neighbour, "Neighbour")
	town.say(`[[tool cmd="echo Zebra42 > zebra.txt; cat zebra.txt"]] ` + tableAnswer)
	town.awaitDone(1)
	town.awaitNoButton("⏹ Stop")
	card := town.awaitButton("🪜 Steps")
	for _, command := range []string{"/sessions", "/files"} {
		town.say("%s", command)
	}
	town.await("Sessions of this chat")
	town.await("📁")
	other.Person().Send(other, "/help")
	theirs, err := other.AwaitText(town.soon(), "/cron")
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range 40 {
		if i == 20 {
			town.stop()
			town.start()
		}
		on, data := aButton(random, town.chat)
		switch {
		case strings.HasPrefix(data, "S:"): // those of sessions may delete or move what this test looks at
			on, data = card, town.buttonData(card, "🪜 Steps")
		case random.IntN(3) == 0:
			on = theirs
		}
		person := town.chat.Person()
		if on.Chat != card.Chat {
			person = other.Person()
		}
		if _, err := person.TapData(on, data).Answer(town.soon()); err != nil {
			t.Fatalf("press %d with %q: %v", i, data, err)
		}
	}
	town.say("/status")
	town.await("Nothing is running")
	for _, m := range other.History() {
		if strings.Contains(fmt.Sprint(m.Text, m.Media), "Zebra42") || m.Media != nil {
			t.Errorf("another chat was shown %q, %v", m.Text, m.Media)
		}
	}
	if n := len(photos(town.chat)); n > 2 {
		t.Errorf("%d pictures of one table in two themes", n)
	}
	answers := 0
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "Animal") {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("%d messages have the answer", answers)
	}
}

// aButton picks a button that a chat shows.
func aButton(random *rand.Rand, chat *telegram.Chat) (on telegram.Message, data string) {
	seen := 0
	for _, m := range chat.View().FromBot() {
		for _, row := range m.Keyboard {
			for _, b := range row {
				if seen++; random.IntN(seen) == 0 {
					on, data = m, b.Data
				}
			}
		}
	}
	return on, data
}
