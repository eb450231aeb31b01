package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// listeningTown returns a town whose transcriber is a shell script.
func listeningTown(t *testing.T, script string, change func(*config.Config)) *town {
	t.Helper()
	at := filepath.Join(t.TempDir(), "stand-in")
	if err := os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return newTown(t, func(c *config.Config) {
		c.Voice.Command = []string{at}
		if change != nil {
			change(c)
		}
	})
}

func TestSpeechBecomesAPrompt(t *testing.T) {
	town := listeningTown(t, `cat "$1"`, nil)
	owner := town.chat.Person()
	for i, send := range []func(said string) telegram.Message{
		func(said string) telegram.Message { return owner.SendVoice(town.chat, []byte(said)) },
		func(said string) telegram.Message {
			return owner.SendAudio(town.chat, telegram.File{Name: "memo.mp3", Data: []byte(said)})
		},
		func(said string) telegram.Message { return owner.SendVideoNote(town.chat, []byte(said)) },
	} {
		said := fmt.Sprintf(`[[text "answer %d"]]`, i)
		spoken := send(said)
		if m := town.awaitDone(i + 1); !strings.Contains(m.Text, fmt.Sprint("answer ", i)) {
			t.Errorf("the answer is %q", m.Text)
		}
		if m := town.await("🎙 " + said); m.ReplyTo != spoken.ID || !m.Silent || len(m.Keyboard) > 0 {
			t.Errorf("the transcript is shown as %+v", m)
		}
	}
	town.stop()
	town.start()
	owner.SendVoice(town.chat, []byte("forwarded [[history]]"), telegram.Forwarding(owner))
	town.awaitDone(4)
	town.say("[[history]]")
	if m := town.awaitDone(5); !strings.Contains(m.Text, "not by the user]") ||
		!hasEntity(m, "blockquote", "forwarded") {
		t.Errorf("a forwarded voice message is not fenced: %q", m.Text)
	}
	shown := 0
	for _, m := range town.chat.View().FromBot() {
		if strings.HasPrefix(m.Text, "🎙") {
			shown++
		}
	}
	if shown != 3 {
		t.Errorf("%d transcripts are shown, want one for each of the owner's own recordings", shown)
	}
}

func TestATranscriberInTrouble(t *testing.T) {
	const script = `
case "$(cat "$1")" in
silence) echo ;;
rubbish) head -c 1000 /dev/urandom; printf '\0' ;;
hang) sleep 600 & sleep 600 ;;
fail) echo "no model" >&2; exit 1 ;;
*) cat "$1" ;;
esac`
	const hung = "took too long"
	town := listeningTown(t, script, nil)
	for said, want := range map[string]string{"silence": "heard no words", "rubbish": "is no text",
		"fail": "no model"} {
		town.awaitAfter(town.chat.Person().SendVoice(town.chat, []byte(said)), want)
	}
	town.chat.Person().SendVoice(town.chat, []byte(`[[text "fine again"]]`))
	town.await("fine again")

	for limit := 2 * time.Second; ; limit *= 2 { // on a slow machine the next transcript also takes too long
		town := listeningTown(t, script, func(c *config.Config) { c.Voice.Timeout = limit })
		town.awaitAfter(town.chat.Person().SendVoice(town.chat, []byte("hang")), hung)
		next := town.chat.Person().SendVoice(town.chat, []byte(`[[text "fine after all"]]`))
		m := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > next.ID && (strings.Contains(m.Text, "fine after all") || strings.Contains(m.Text, hung))
		})
		town.stop()
		if !strings.Contains(m.Text, hung) {
			break
		} else if limit > time.Minute {
			t.Fatalf("with %s for a transcript, the chat says %q", limit, m.Text)
		}
	}
}

// A reply to a voice message quotes its words. If they are unknown, the chat says why, and the agent learns that a
// recording is missing.
func TestARepliedVoiceMessage(t *testing.T) {
	const missing = "[The recording in the message that this replies to is missing"
	for name, c := range map[string]struct{ script, direct, notice, told string }{
		"heard":         {`cat "$1"`, "", "", "[Said in the message that this replies to]"},
		"nothing heard": {"echo", "I heard no words in it", "I heard no words in it.", missing},
		"failed": {`echo "no model" >&2; exit 1`, "I couldn't turn this into text", "I couldn't turn it into text",
			missing},
		"without a program": {"", "I can't understand speech yet", "I can't understand speech yet", missing},
	} {
		t.Run(name, func(t *testing.T) {
			var town *town
			if c.script == "" {
				town = newTown(t, nil)
			} else {
				town = listeningTown(t, c.script, nil)
			}
			owner := town.chat.Person()
			voice := owner.SendVoice(town.chat, []byte("the words"))
			town.awaitAfter(voice, c.direct)
			reply := owner.Send(town.chat, "translate", telegram.ReplyTo(voice.ID))
			if c.notice != "" {
				m := town.awaitAfter(reply, "Your message runs without the recording to which it replies. "+c.notice)
				if m.ReplyTo != reply.ID || strings.Contains(m.Text, "again") {
					t.Errorf("the notice about message %d is %+v", reply.ID, m)
				}
			}
			town.awaitMessage(func(m telegram.Message) bool {
				return m.ID > reply.ID && strings.Contains(m.Text, "translate") && !m.HasButton("⏹ Stop")
			})
			prompts := town.asked(private)
			if last := prompts[len(prompts)-1].Text; !strings.HasPrefix(last, c.told) ||
				!strings.HasSuffix(last, "\ntranslate") {
				t.Errorf("the agent got %q", last)
			}
		})
	}
}

func TestATranscriptIsConfirmed(t *testing.T) {
	town := listeningTown(t, `cat "$1"`, func(c *config.Config) { c.Voice.Confirm = true })
	owner := town.chat.Person()
	owner.SendVoice(town.chat, []byte(`[[text "first answer"]]`))
	m := town.awaitKeyboard(telegram.Message{}, "✅ Send")
	if !strings.Contains(m.Text, "first answer") || len(ended(town.chat.View())) > 0 {
		t.Errorf("it asks %q", m.Text)
	}
	town.stop()
	town.start()
	town.pressOn(m, "✅ Send")
	town.awaitDone(1)
	owner.TapData(m, m.Keyboard[0][0].Data) // a second press, which has no effect

	spoken := owner.SendVoice(town.chat, []byte("wrong"))
	town.await("wrong")
	owner.Edit(spoken, `[[text "edited answer"]]`)
	m = town.await("edited answer")
	town.pressOn(m, "✅ Send")
	town.awaitDone(2)

	owner.SendVoice(town.chat, []byte("also wrong"))
	m = town.await("also wrong")
	owner.Send(town.chat, `[[text "replied answer"]]`, telegram.ReplyTo(m.ID))
	m = town.await("replied answer")
	town.pressOn(m, "✅ Send")
	town.awaitDone(3)

	owner.SendVoice(town.chat, []byte("discarded"))
	town.pressOn(town.await("discarded"), "✖ Discard")
	town.await("Discarded")
	town.say(`[[text "last"]]`)
	if m := town.awaitDone(4); !strings.Contains(m.Text, "last") || len(ended(town.chat.View())) != 4 {
		t.Errorf("of %d answers the last is %q", len(ended(town.chat.View())), m.Text)
	}
}

func TestThingsAreSaidInWords(t *testing.T) {
	town := newTown(t, nil)
	owner := town.chat.Person()
	for i, c := range []struct {
		send func()
		want string
	}{
		{func() { owner.SendPlace(town.chat, 52.52, 13.405, "", "") },
			"[Location: latitude 52.520000, longitude 13.405000]"},
		{func() { owner.SendPlace(town.chat, 52.52, 13.405, "Zoo", "Hardenbergplatz 8") },
			`[Place: "Zoo" at "Hardenbergplatz 8", latitude 52.520000`},
		{func() { owner.SendContact(town.chat, "Ada [x]", "+49 30 1") }, `[Contact: "Ada [x]", phone "+49 30 1"]`},
	} {
		c.send()
		if m := town.awaitDone(i + 1); !strings.Contains(m.Text, c.want) {
			t.Errorf("the agent got %q, want %q", m.Text, c.want)
		}
	}
}
