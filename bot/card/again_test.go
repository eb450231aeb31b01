package card

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// jobTurn returns a finished turn of a job.
func (s *rig) jobTurn(answer string) orchestrator.Turn {
	t := s.turn
	t.Wants = orchestrator.Wants{Title: "⏰ CI report", Card: orchestrator.CardStyle{Then: "Next try in 2m: 2 of 3."}}
	t.State, t.Outcome = orchestrator.TurnDone, orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer, Model: "opus"}
	return t
}

// remark adds a remark as a job does: it repeats the call until the chat shows the remark.
func (s *rig) remark(turn orchestrator.Turn, line string) {
	s.Helper()
	for range 10 {
		err := s.cards.Remark(context.Background(), turn, line)
		if err == nil {
			return
		}
		if !errors.Is(err, ErrNotYet) {
			s.Errorf("remark: %v", err)
		}
		time.Sleep(15 * time.Second)
	}
	s.Errorf("%q is never there", line)
}

func TestACardSaysWhichJobItIs(t *testing.T) {
	withRig(t, func(s *rig) {
		turn := s.jobTurn("")
		c := s.cards.Open(turn)
		s.wantText("")
		c.Show(cli.TextDelta{Text: "look"})
		s.wantText("⏰ CI report\n\nlook")
		s.finish(c, orchestrator.Outcome{State: orchestrator.TurnFailed, Text: "looked", Failure: "It broke."})
		s.wantText("⏰ CI report\n\nlooked\n\n⚠️ It broke.\n🔁 Next try in 2m: 2 of 3.")
	})
	withRig(t, func(s *rig) {
		turn := s.jobTurn("")
		turn.State, turn.Outcome = orchestrator.TurnInterrupted, orchestrator.Outcome{State: orchestrator.TurnInterrupted, Failure: "The lights went out."}
		if err := s.cards.Redeliver(s.Context(), turn); err != nil {
			t.Error(err)
		}
		s.wantText("⏰ CI report\n⚠️ The lights went out.\n[Run again]")
	})
}

// TestARemark: a remark is one line below the last message. It replaces the previous remark and needs no new message.
func TestARemark(t *testing.T) {
	withRig(t, func(s *rig) {
		turn := s.jobTurn("all green")
		if err := s.cards.Redeliver(s.Context(), turn); err != nil {
			s.Error(err)
		}
		for _, line := range []string{"🔁 once", "🔁 twice", "🔁 twice"} {
			s.remark(turn, line)
			s.wantText("⏰ CI report\n\nall green\n\nopus\n\n" + line)
		}
		s.restart(orchestrator.TurnDone, "all green")
		s.wantText("⏰ CI report\n\nall green\n\nopus\n\n🔁 twice")
		if n := s.chat.Count("send"); n != 1 {
			t.Errorf("%d messages were sent", n)
		}
	})
}

// TestARemarkTouchesTheLastMessageAlone: a remark changes only the last message of a long answer, and none that has no
// room for it.
func TestARemarkTouchesTheLastMessageAlone(t *testing.T) {
	withRig(t, func(s *rig) {
		turn := s.jobTurn(strings.Repeat("Many words are in this line.\n\n", 300))
		if err := s.cards.Redeliver(s.Context(), turn); err != nil {
			s.Error(err)
		}
		s.restart(orchestrator.TurnDone, turn.Outcome.Text)
		time.Sleep(time.Minute) // let the budget recover
		edits := s.chat.Count("edit")
		s.remark(turn, "🔁 once")
		all := s.chat.Visible()
		if last := all[len(all)-1]; len(all) != 3 || !strings.HasSuffix(last.Text.Text, "🔁 once") {
			t.Errorf("%d messages, the last of them %q", len(all), last.Text.Text)
		}
		if n := s.chat.Count("edit") - edits; n != 1 {
			t.Errorf("%d messages were edited", n)
		}
	})
}

// TestARemarkOnACardThatIsGone: the answer is sent again, once.
func TestARemarkOnACardThatIsGone(t *testing.T) {
	withRig(t, func(s *rig) {
		turn := s.jobTurn("all green")
		for _, line := range []string{"🔁 once", "🔁 twice"} {
			s.remark(turn, line)
			s.wantText("⏰ CI report\n\nall green\n\nopus\n\n" + line)
		}
	})
}

// killAfterWrites makes this process die at the n-th write from now. After that nothing more is stored or sent.
func (s *rig) killAfterWrites(writes int) {
	s.journal.Mu.Lock()
	s.journal.DiesAt = s.journal.Writes + writes
	s.journal.Mu.Unlock()
	s.chat.Mu.Lock() // running cards call it
	defer s.chat.Mu.Unlock()
	s.chat.Mishaps = func(string) bottest.Mishap {
		if s.journal.Dead() {
			return bottest.NotSent
		}
		return bottest.GoesWell
	}
}

// TestARemarkSurvivesDeathAtEveryWrite: a caller that got no confirmation repeats the call.
func TestARemarkSurvivesDeathAtEveryWrite(t *testing.T) {
	for at := 1; ; at++ {
		died := false
		withRig(t, func(s *rig) {
			turn := s.jobTurn("all green")
			if err := s.cards.Redeliver(s.Context(), turn); err != nil {
				s.Error(err)
			}
			s.killAfterWrites(at)
			if err := s.cards.Remark(s.Context(), turn, "🔁 once"); err == nil {
				return
			}
			died = true
			s.restart(orchestrator.TurnDone, "all green")
			s.remark(turn, "🔁 once")
			s.wantText("⏰ CI report\n\nall green\n\nopus\n\n🔁 once")
		})
		if t.Failed() || !died {
			return
		}
	}
}

// TestShowingAgainSurvivesDeathAtEveryWrite: a user who presses the button again gets the missing messages, in order.
func TestShowingAgainSurvivesDeathAtEveryWrite(t *testing.T) {
	for at := 1; ; at++ {
		died := false
		withRig(t, func(s *rig) {
			s.chat.Mishaps = bottest.AtFirst(bottest.LostBefore)
			var words []string
			for i := range 1000 {
				words = append(words, fmt.Sprintf("word%d", i))
			}
			answer := strings.Join(words, " ")
			c := s.newCard()
			s.finish(c, orchestrator.Outcome{Text: answer})
			from := len(s.chat.Visible())
			s.killAfterWrites(at)
			turn := s.turn
			turn.State, turn.Outcome = orchestrator.TurnDone, orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer}
			_ = s.cards.ShowAgain(s.Context(), turn)
			if died = s.journal.Dead(); died {
				s.restartAfterDeath()
				_ = s.cards.ShowAgain(s.Context(), turn)
			}
			time.Sleep(time.Minute)
			left := words
			for _, p := range s.chat.Visible()[from:] {
				for _, w := range strings.Fields(p.Text.Text) {
					if len(left) > 0 && w == left[0] {
						left = left[1:]
					}
				}
			}
			if n := len(s.chat.Visible()) - from; len(left) > 0 || n > 5 {
				t.Errorf("died at write %d: %d messages are shown again, with all up to %q", at, n, left[:min(len(left), 1)])
			}
		})
		if t.Failed() || !died {
			return
		}
	}
}

// away makes the chat unreachable until back is called.
func (s *rig) away() (back func()) {
	var is atomic.Bool
	s.chat.Mishaps = func(string) bottest.Mishap {
		if is.Load() {
			return bottest.GoesWell
		}
		return bottest.NotSent
	}
	return func() { is.Store(true) }
}

// TestARemarkDoesNotWaitForAChatThatIsAway: the remark is shown as soon as the chat is back.
func TestARemarkDoesNotWaitForAChatThatIsAway(t *testing.T) {
	withRig(t, func(s *rig) {
		turn := s.jobTurn("all green")
		if err := s.cards.Redeliver(s.Context(), turn); err != nil {
			s.Error(err)
		}
		back := s.away()
		for range 3 {
			began := time.Now()
			if err := s.cards.Remark(s.Context(), turn, "🔁 once"); !errors.Is(err, ErrNotYet) || time.Since(began) > remarkPatience {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		}
		back()
		time.Sleep(10 * time.Minute)
		s.wantText("⏰ CI report\n\nall green\n\nopus\n\n🔁 once")
		if err := s.cards.Remark(context.Background(), turn, "🔁 once"); err != nil {
			t.Error(err)
		}
	})
}

// TestAJobWithoutATurnIsToldOnce: the message in place of a card is sent once, however often Say is called.
func TestAJobWithoutATurnIsToldOnce(t *testing.T) {
	withRig(t, func(s *rig) {
		never := orchestrator.Turn{ID: "job-never", Prompt: orchestrator.Prompt{Conversation: s.turn.Prompt.Conversation}}
		show := tgapi.Keyboard{{{Text: "⏰ Show the job", Data: "j"}}}
		for range 2 {
			if err := s.cards.Say(s.Context(), never, "⏰ CI report\n⚠️ It did not run.", show); err != nil {
				s.Error(err)
			}
			synctest.Wait()
		}
		s.wantText("⏰ CI report\n⚠️ It did not run.\n[⏰ Show the job]")
		if n := s.chat.Count("send"); n != 1 {
			t.Errorf("it is told %d times", n)
		}
	})
}

// TestShowingAgainWhileARemarkIsMade: a user who presses then gets ErrBusy, and can press again.
func TestShowingAgainWhileARemarkIsMade(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Mishaps = bottest.AtFirst(bottest.LostBefore)
		turn := s.jobTurn("all green\n\n" + strings.Repeat("Many words are in this line.\n\n", 300))
		if err := s.cards.Redeliver(s.Context(), turn); err != nil {
			s.Error(err)
		}
		back := s.away()
		if err := s.cards.Remark(s.Context(), turn, "🔁 once"); !errors.Is(err, ErrNotYet) {
			t.Errorf("remark: %v", err)
		}
		shown := s.cards.ShowAgain(s.Context(), turn) == nil
		back()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if shown != strings.Contains(s.chat.Text(), "all green") {
			t.Errorf("whoever asked was told it is shown: %t. The chat shows\n%s", shown, s.chat.Text())
		}
	})
}
