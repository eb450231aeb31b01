package acp

import (
	"context"
	"time"

	"ductor/cli"
)

const (
	// lateQuiet is how long an agent must be silent after a turn until ductor assumes that no more text of this turn
	// follows.
	lateQuiet = 200 * time.Millisecond
	lateWaits = 25      // how often awaitLate waits for silence, at most
	lateBytes = 1 << 20 // maximum size of the text that an agent sends after the end of a turn
)

// late collects late text: text that the agent sends after the reply that ended a turn. The session's mutex guards it.
type late struct {
	conversation cli.Conversation
	turn         cli.TurnID // the turn that was started last
	expected     bool       // set after a turn that ended normally; otherwise late text is dropped
	text         []byte
	last         time.Time // time of the end of the turn, or of the last text after it
	timer        *time.Timer
}

// expectLate makes the session accept text that the agent sends after the end of the turn.
func (s *session) expectLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.late.expected, s.past.late.last = true, s.options().Now()
}

// takeLate collects text that the agent sends between two turns. After the agent has been silent for lateQuiet,
// showLate passes the text to the user.
func (s *session) takeLate(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late, text := &s.past.late, u.Content.Text()
	if !late.expected || u.Kind != updateMessage || text == "" || len(late.text) > lateBytes {
		return
	}
	s.process.provider.late.Store(true)
	late.text = append(late.text, text...)
	late.last = s.options().Now()
	if late.timer != nil {
		late.timer.Stop()
	}
	late.timer = time.AfterFunc(lateQuiet, s.showLate)
}

// showLate passes the text that takeLate has collected to Options.Background.
func (s *session) showLate() {
	s.mu.Lock()
	late := &s.past.late
	text, in, of := string(late.text), late.conversation, late.turn
	late.text = nil
	if late.timer != nil {
		late.timer.Stop()
		late.timer = nil
	}
	s.mu.Unlock()
	if text != "" && s.options().Background != nil {
		s.options().Background(in, cli.BackgroundResult{Text: text, Of: of})
	}
}

// awaitLate waits until the agent has sent all text of the previous turn. Without this wait, such text could appear in
// the answer of the next turn. awaitLate does not wait for an agent that has never sent text after the end of a turn.
func (s *session) awaitLate(ctx context.Context) {
	defer s.showLate()
	for range lateWaits {
		s.mu.Lock()
		late := s.past.late
		left := lateQuiet - s.options().Now().Sub(late.last)
		s.mu.Unlock()
		if !late.expected || left <= 0 || !s.process.provider.late.Load() {
			return
		}
		wait := time.NewTimer(left)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		}
	}
}
