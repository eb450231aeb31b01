package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// buttonData returns the data of a message's button.
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

// The Stop button of a running card ends only its turn, and the next prompt runs. A second press changes nothing and
// says so. If prompts waited, each answer replies to its prompt.
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
	a, err := town.chat.Person().TapEarly(card, data).Answer(town.soon())
	if err != nil || a.Text != "Too late: it has ended." {
		t.Errorf("a press on an old card is answered with %q: %v", a.Text, err)
	}
}

// A turn longer than notify.long ends with a message that replies to the prompt, unless /notify never was chosen.
func TestALongTurnAnnouncesItsEnd(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass"; c.Notify.Mode = "always" })
	prompt := town.say(`[[start]] [[text "working"]] [[tool cmd="sleep 11"]] [[text "the work is over"]]`)
	end := town.await("✅ Done · ")
	if end.ReplyTo != prompt.ID {
		t.Errorf("%q replies to %d, not %d", end.Text, end.ReplyTo, prompt.ID)
	}
	town.say("/notify never")
	town.await("Set. I notify you: never.")
	town.awaitIdle()
	town.say(`[[start]] [[text "again"]] [[tool cmd="sleep 11"]] [[text "the work is over twice"]]`)
	town.await("the work is over twice")
	town.awaitIdle()
	time.Sleep(time.Second) // an announcement would come now
	for _, m := range town.chat.View().FromBot() {
		if m.ID > end.ID && strings.Contains(m.Text, "✅ Done") {
			t.Errorf("the end is announced: %q", m.Text)
		}
	}
}

// A button below a finished card lists the turn's steps. A step has its whole command, the end of its output, and a
// complete file. Steps contain no secrets, are not visible in other chats, and work after a restart.
func TestTheStepsOfATurn(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) {
				c.Agents.Default = cli.Agent(agent)
				c.Permissions.Mode = "bypass"
				c.Telegram.AllowedUsers = []int64{owner, neighbour}
			})
			token := town.srv.Token()
			town.say(`[[tool cmd="seq 1 3000; echo %s; exit 3"]] [[text "It is done."]]`, token)
			town.awaitDone(1)
			town.awaitNoButton("⏹ Stop")
			card := town.awaitButton("🪜 Steps")
			town.stop()
			town.start()
			data := town.buttonData(card, "🪜 Steps")
			other := town.srv.Private(neighbour, "Neighbour")
			other.Person().Send(other, "/help")
			theirs, err := other.AwaitText(town.soon(), "/cron")
			if err != nil {
				t.Fatal(err)
			}
			a, err := other.Person().TapEarly(theirs, data).Answer(town.soon())
			if err != nil || a.Text != "This button no longer works." {
				t.Errorf("a press in another chat is answered with %q: %v", a.Text, err)
			}
			town.pressOn(card, "🪜 Steps")
			list := town.await("1 step")
			if list.ReplyTo != card.ID || !strings.Contains(list.Text, "seq 1 3000") {
				t.Errorf("the list replies to %d and says %q", list.ReplyTo, list.Text)
			}
			town.pressOn(list, "1")
			step := town.await("2999")
			if step.ID != list.ID || !hasKind(step, "expandable_blockquote") || strings.Contains(step.Text, "\n1\n") ||
				!strings.Contains(step.Text, "exit 3") {
				t.Errorf("the step says %q: %+v", step.Text, step.Entities)
			}
			town.pressOn(step, "📄 Whole output")
			file := town.awaitMessage(func(m telegram.Message) bool {
				return m.Media != nil && m.Media.Name == "step-1.txt"
			})
			content, _ := town.srv.FileData(file.Media.FileID)
			for _, shown := range []string{list.Text, step.Text, string(content)} {
				if strings.Contains(shown, token) {
					t.Errorf("the token is shown: %q", shown)
				}
			}
			if !strings.Contains(string(content), "\n2\n3\n") {
				t.Errorf("the file lacks the beginning of the output: %.200q", content)
			}
		})
	}
}

func hasKind(m telegram.Message, kind string) bool {
	for _, e := range m.Entities {
		if e.Type == kind {
			return true
		}
	}
	return false
}
