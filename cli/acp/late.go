package acp

import (
	"context"
	"time"

	"ductor/cli"
)

const (
	// lateQuiet is the silence after which no more text of a finished turn is expected.
	lateQuiet = 200 * time.Millisecond
	lateWaits = 25      // for an agent that is never quiet
	lateBytes = 1 << 20 // for an agent that writes text without end
)

// late is text that arrives after the reply that ended a turn. The session's mutex guards it.
type late struct {
	conversation cli.Conversation
	turn         cli.TurnID // the turn that started last
	expected     bool       // it ended normally, so the text belongs to its answer
	text         []byte
	last         time.Time // when the turn ended, or text came
	timer        *time.Timer
}

// expectLate starts to accept text after the end of a turn.
func (s *session) expectLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.late.expected, s.past.late.last = true, s.process.options().Now()
}

// takeLate records text that arrives between two turns. showLate passes it on once the agent has been quiet for a
// while.
func (s *session) takeLate(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := u.Content.text()
	if !s.past.late.expected || u.Kind != updateMessage || text == "" || len(s.past.late.text) > lateBytes {
		return
	}
	s.process.provider.late.Store(true)
	s.past.late.text = append(s.past.late.text, text...)
	s.past.late.last = s.process.options().Now()
	if s.past.late.timer != nil {
		s.past.late.timer.Stop()
	}
	s.past.late.timer = time.AfterFunc(lateQuiet, s.showLate)
}

// showLate passes on the text that takeLate recorded.
func (s *session) showLate() {
	s.mu.Lock()
	text, in, of := string(s.past.late.text), s.past.late.conversation, s.past.late.turn
	s.past.late.text = nil
	if s.past.late.timer != nil {
		s.past.late.timer.Stop()
		s.past.late.timer = nil
	}
	s.mu.Unlock()
	if text != "" && s.process.options().Background != nil {
		s.process.options().Background(in, cli.BackgroundResult{Result: cli.Result{Text: text}, Of: of})
	}
}

// awaitLate is for agents that are known to send late text. It waits until the agent has been quiet, so that no text of
// the last answer gets into the next answer.
func (s *session) awaitLate(ctx context.Context) {
	defer s.showLate()
	for range lateWaits {
		s.mu.Lock()
		left := lateQuiet - s.process.options().Now().Sub(s.past.late.last)
		expected := s.past.late.expected
		s.mu.Unlock()
		if !expected || left <= 0 || !s.process.provider.late.Load() {
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
