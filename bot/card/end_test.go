package card

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// ends counts the chat's messages that announce an end.
func (s *rig) ends() (n int) {
	for _, p := range s.chat.Visible() {
		if strings.Contains(p.Text.Text, "✅ Done · ") {
			n++
		}
	}
	return n
}

// TestALongTurnEndsWithAMessage: it replies to the prompt and is sent once, even if ductor dies at any write.
func TestALongTurnEndsWithAMessage(t *testing.T) {
	for at := 0; ; at++ {
		died := false
		withRig(t, func(s *rig) {
			s.turn.Prompt.Message = 5
			c := s.newCard()
			c.Show(cli.TextDelta{Text: "look"})
			time.Sleep(2 * time.Minute)
			if at > 0 {
				s.killAfterWrites(at)
			}
			o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: "looked", Model: "opus", Duration: 2 * time.Minute, Ending: orchestrator.Ending{Announce: orchestrator.Announced}}
			err := c.Finish(s.Context(), o)
			if died = s.journal.Dead(); died || err != nil {
				s.restartAfterDeath()
				s.turn.State, s.turn.Outcome = o.State, o
				if err := s.cards.Redeliver(s.Context(), s.turn); err != nil {
					s.Error(err)
				}
			}
			time.Sleep(time.Minute)
			all := s.chat.Visible()
			if n := s.ends(); n != 1 && (n > 1 || s.chat.Count("send") < 2) {
				t.Errorf("death at write %d: the end is announced %d times:\n%s", at, n, s.chat.Text())
			}
			if last := all[len(all)-1]; at == 0 && (last.ReplyTo != 5 || last.Silent || last.Text.Text != "✅ Done · opus · 2 min 0 s") {
				t.Errorf("the last message is %+v", last)
			}
		})
		if t.Failed() || at > 0 && !died {
			return
		}
	}
}

// TestWhatNeedsNoAnnouncement: a turn whose first message comes at its end, and a turn in quiet hours, get no
// announcement.
func TestWhatNeedsNoAnnouncement(t *testing.T) {
	withRig(t, func(s *rig) {
		s.finish(s.newCard(), orchestrator.Outcome{Text: "looked", Duration: time.Hour, Ending: orchestrator.Ending{Announce: orchestrator.Announced}})
		if n := len(s.chat.Visible()); n != 1 {
			t.Errorf("%d messages", n)
		}
	})
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "look"})
		time.Sleep(time.Minute)
		s.finish(c, orchestrator.Outcome{Text: "looked", Failure: "It broke.", Duration: time.Hour, Ending: orchestrator.Ending{Announce: orchestrator.Muted}})
		all := s.chat.Visible()
		if last := all[len(all)-1]; len(all) != 2 || !last.Silent || !strings.HasPrefix(last.Text.Text, "⚠️ It broke. · ") {
			t.Errorf("%d messages, the last is %+v", len(all), last)
		}
	})
}

// TestWhatATurnChangedIsAddedToItsEnd: one edit each adds it to the answer and to the message that announces the end.
func TestWhatATurnChangedIsAddedToItsEnd(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.ToolStarted{ID: "1", Name: "Edit", Title: "a.txt"})
		c.Show(cli.TextDelta{Text: "look"})
		time.Sleep(2 * time.Minute)
		o := orchestrator.Outcome{Text: "looked", Model: "opus", Duration: 2 * time.Minute, Ending: orchestrator.Ending{Announce: orchestrator.Announced}}
		s.finish(c, o)
		before, edits := s.chat.Visible(), s.chat.Count("edit")
		o.Changed = orchestrator.Changed{Files: 1, Added: 2}
		for range 2 {
			if err := c.Amend(s.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		all := s.chat.Visible()
		if len(all) != len(before) || s.chat.Count("edit") != edits+2 {
			t.Errorf("%d messages after %d, %d edits:\n%s", len(all), len(before), s.chat.Count("edit")-edits, s.chat.Text())
		}
		for i, end := range []string{"looked\n\n1 file +2 −0 · ", "✅ Done · 1 file +2 −0 · "} {
			if got := all[i].Text.Text; !strings.Contains(got, end) || strings.Count(got, "2 min") != 1 {
				t.Errorf("message %d is %q", i, got)
			}
		}
	})
}

// Lines are counted only if the file has lines.
func TestAnEmptyFileHasNoLines(t *testing.T) {
	for changed, want := range map[orchestrator.Changed]string{
		{Files: 1}: "1 file", {Files: 2}: "2 files", {Files: 1, Removed: 3}: "1 file +0 −3",
	} {
		var o orchestrator.Outcome
		o.Changed = changed
		if got := footerLine(lang.Printer{}, o, nil, nil); got != want {
			t.Errorf("the footer is %q, want %q", got, want)
		}
	}
}
