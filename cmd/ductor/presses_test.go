package main

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// buttonChat is a chat with all kinds of buttons, and the chats of other users who press them too.
type buttonChat struct {
	*town
	card      telegram.Message // the answer
	neighbour *telegram.Chat   // of a listed user
	theirs    telegram.Message // in that chat
	stranger  *telegram.Chat   // of a user who is not listed
	plots     int              // presses that send a picture
}

// No sequence of presses on the buttons of answers and screens, by any user, at any time and across restarts, runs a
// prompt, changes or sends anything twice, or shows anything of another chat.
func TestAnySequenceOfPressesOnButtons(t *testing.T) {
	p := pressedTown(t)
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 24).Draw(t, "restart") == 0 {
			p.stop()
			p.start()
		}
		for range rapid.IntRange(1, 4).Draw(t, "presses") {
			p.press(t)
		}
		if left := p.violation(); left != "" {
			t.Fatal(left)
		}
	})
	p.awaitIdle()
}

func pressedTown(t *testing.T) *buttonChat {
	t.Helper()
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Stream.Display = "ask", "ask"
		c.Telegram.AllowedUsers = []int64{owner, neighbour}
	})
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; git add .; git commit -qm one`)
	p := &buttonChat{town: town, neighbour: town.srv.Private(neighbour, "Neighbour"),
		stranger: town.srv.Private(stranger, "Eve")}
	town.say(`[[start]] [[ask cmd="echo Zebra42 > zebra.txt; cat zebra.txt"]] ` + tableAnswer)
	asked := town.awaitButton("✅ Allow once")
	town.awaitLook(1)
	town.pressOn(asked, "✅ Allow once")
	town.awaitDone(1)
	town.awaitNoButton("⏹ Stop")
	p.card = town.awaitButton("↩️ Undo")
	town.awaitButton("I see a table")
	town.say(`/consult codex Which? [[text "Advice42 it is."]]`)
	town.awaitButton("➡️ Give to Claude")
	for command, part := range map[string]string{"/sessions": "Sessions in this chat", "/files": "📁",
		"/usage": "Usage:", "/diff": "zebra.txt", "/checkpoint here": "Checkpoint saved"} {
		town.say("%s", command)
		town.await(part)
	}
	p.neighbour.Person().Send(p.neighbour, "/help")
	var err error
	if p.theirs, err = p.neighbour.AwaitText(town.soon(), "/cron"); err != nil {
		t.Fatal(err)
	}
	return p
}

// press presses a visible button: the owner does so in the chat, a listed user in another chat, or a stranger.
func (p *buttonChat) press(t *rapid.T) {
	type button struct {
		on   telegram.Message
		data string
	}
	var all []button
	for _, m := range p.chat.View().FromBot() {
		for _, row := range m.Keyboard {
			for _, b := range row {
				// Buttons of sessions delete and move the state that this test checks.
				if !strings.HasPrefix(b.Data, "S:") {
					all = append(all, button{m, b.Data})
				}
			}
		}
	}
	b := rapid.SampledFrom(all).Draw(t, "button")
	switch rapid.SampledFrom([]string{"owner", "owner", "owner", "neighbour", "stranger", "stranger here"}).Draw(t,
		"by") {
	case "neighbour":
		if strings.HasPrefix(b.data, "U:s:") {
			return // acts as /diff in the neighbour's own chat, which has the same directory
		}
		p.answered(t, p.neighbour.Person().TapEarly(p.theirs, b.data))
	case "stranger":
		p.stranger.Person().TapData(p.stranger.Person().Send(p.stranger, "hello"), b.data)
	case "stranger here":
		p.stranger.Person().TapData(b.on, b.data)
	default:
		if strings.HasPrefix(b.data, "up:") {
			p.plots++
		}
		p.answered(t, p.chat.Person().TapData(b.on, b.data))
	}
}

func (p *buttonChat) answered(t *rapid.T, tap *telegram.Tap) {
	if _, err := tap.Answer(p.soon()); err != nil {
		t.Fatalf("a press is not answered: %v", err)
	}
}

// violation returns a forbidden effect of presses, or "".
func (p *buttonChat) violation() string {
	for _, chat := range []*telegram.Chat{p.neighbour, p.stranger} {
		for _, m := range chat.View().FromBot() {
			if strings.Contains(fmt.Sprint(m.Text, m.Media), "Zebra42") || m.Media != nil || chat == p.stranger {
				return fmt.Sprintf("another chat was shown %q, %v", m.Text, m.Media)
			}
		}
	}
	pictures := map[string]int{}
	for _, m := range photos(p.chat) {
		name, _, _ := strings.Cut(m.Media.Name, "-")
		pictures[name]++
	}
	if pictures["table"] > 2 || pictures["usage.png"] > p.plots {
		return fmt.Sprintf("the chat has the pictures %v, and %d plots were asked for", pictures, p.plots)
	}
	answers, given := 0, 0
	for _, m := range p.chat.View().FromBot() {
		if strings.Contains(m.Text, "Advice42") && !strings.Contains(m.Text, "Which?") {
			given++
		}
		if strings.Contains(m.Text, "Animal") && m.Media == nil {
			answers++
		}
	}
	if given > 2 { // the answer of Codex, and the one of Claude, which got it
		return fmt.Sprintf("%d messages have the advice", given)
	}
	if answers != 1 {
		return fmt.Sprintf("%d messages have the answer", answers)
	}
	// After undo, redo or commit, the turn's only file is complete or missing, and no commit exists twice.
	state := p.sh(`cat zebra.txt 2>/dev/null || echo none; cat a.txt; git log --format=%s | grep -vc '^one$' || true`)
	if f := strings.Fields(state); len(f) != 3 || f[0] != "Zebra42" && f[0] != "none" || f[1] != "one" || f[2] != "0" &&
		f[2] != "1" {
		return fmt.Sprintf("the project has %q", state)
	}
	return ""
}
