package card

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// paragraphs returns an answer of n numbered paragraphs.
func paragraphs(n int) (all []string, answer string) {
	for i := range n {
		all = append(all, fmt.Sprintf("Paragraph %d says a little and ends.\n\n", i))
	}
	return all, strings.Join(all, "")
}

// If an answer is too long for its messages, they show its beginning and its newest part, and in the end a file
// contains all of it.
func TestALongAnswerIsItsTwoEndsAndAFile(t *testing.T) {
	withRig(t, func(s *rig) {
		s.cards.restyle(func(l *Look) { l.MaxMessages = 3 })
		c := s.newCard()
		all, answer := paragraphs(2000)
		for i, p := range all {
			c.Show(cli.TextDelta{Text: p})
			if i%20 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(5 * time.Second)
		newest := s.chat.Visible()[2].Text.Text
		if !strings.Contains(newest, "Paragraph 1999 ") || !strings.HasPrefix(newest, "⋯ ") {
			t.Errorf("while it grew the last message showed %q", newest)
		}
		s.finish(c, orchestrator.Outcome{Text: answer, Model: "opus", Duration: 3 * time.Second})
		posts := s.chat.Visible()
		if len(posts) != 3 {
			t.Fatalf("%d messages", len(posts))
		}
		for part, want := range map[int]string{0: "Paragraph 0 ", 2: "Paragraph 1999 "} {
			if got := posts[part].Text.Text; !strings.Contains(got, want) {
				t.Errorf("message %d has no %q: %q", part, want, got)
			}
		}
		if got := posts[2].Text.Text; !strings.HasSuffix(got, "opus · 3.0 s") {
			t.Errorf("the last message ends in %q", got[max(len(got)-40, 0):])
		}
		if len(s.chat.Sent()) != 1 || s.chat.Sent()[0] != answer {
			t.Errorf("%d files were sent", len(s.chat.Sent()))
		}
		if n := s.chat.Count("send"); n != 3 {
			t.Errorf("%d sends for 3 messages", n)
		}
	})
}

// The file is sent once, whenever ductor dies. If it is unknown whether the chat has it, a notice says so.
func TestTheFileOfALongAnswerIsSentOnce(t *testing.T) {
	withRig(t, func(s *rig) {
		s.cards.restyle(func(l *Look) { l.MaxMessages = 2 })
		_, answer := paragraphs(400)
		s.turn.State, s.turn.Outcome = orchestrator.TurnDone, orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer}
		for range 3 {
			s.redeliver()
		}
		if len(s.chat.Sent()) != 1 || len(s.chat.Visible()) != 2 {
			t.Errorf("%d files and %d messages", len(s.chat.Sent()), len(s.chat.Visible()))
		}
	})
	withRig(t, func(s *rig) {
		s.cards.restyle(func(l *Look) { l.MaxMessages = 2 })
		s.chat.Mishaps = func(method string) bottest.Mishap {
			if method == "document" {
				return bottest.LostAfter
			}
			return bottest.GoesWell
		}
		_, answer := paragraphs(400)
		s.turn.State, s.turn.Outcome = orchestrator.TurnDone, orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer}
		s.redeliver()
		posts := s.chat.Visible()
		if last := posts[len(posts)-1]; len(s.chat.Sent()) != 1 || !strings.Contains(last.Text.Text, "part of it may be missing") {
			t.Errorf("%d files, and the chat says %q", len(s.chat.Sent()), last.Text.Text)
		}
		s.chat.Mishaps = nil
		if err := s.cards.ShowAgain(context.Background(), s.turn); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // it may continue after ShowAgain has returned
		if len(s.chat.Sent()) != 2 {
			t.Errorf("the user asked for it again and %d files were sent in all", len(s.chat.Sent()))
		}
	})
}

// Messages filled with words to the last character split no word, however many there are.
func TestFullMessagesCutNoWord(t *testing.T) {
	d, words := newDocument(false), []string{}
	for n := range 4 {
		line := strings.Fields(strings.Repeat(fmt.Sprintf("word%03d ", n), render.FullMessage/8))
		line[0] += "s"
		words = append(words, line...)
	}
	d.applyEvent(cli.TextDelta{Text: strings.Join(words, " ")})
	_, texts, _ := d.layout([]position{{}}, render.FullMessage, 0)
	var shown []string
	for _, text := range texts {
		shown = append(shown, strings.Fields(text.Text)...)
	}
	if !slices.Equal(shown, words) {
		t.Errorf("%d messages show %d words of %d", len(texts), len(shown), len(words))
	}
}
