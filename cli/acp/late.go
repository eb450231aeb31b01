package acp

import (
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// lateQuiet is the silence after which no more text of a turn is expected that has ended.
const lateQuiet = 200 * time.Millisecond

// late is text that follows the reply that ended a turn. Its session's mutex guards it.
type late struct {
	expected bool // the last turn ended by itself, so text belongs to its answer
	text     strings.Builder
	last     time.Time // when the turn ended, or text came
	timer    *time.Timer
}

// expectLate begins to take text that follows the end of a turn. s.mu is held.
func (s *session) expectLate() { s.late.expected, s.late.last = true, s.process.opts.Now() }

// takeLate takes text that came between two turns. It is shown once the agent has been quiet. s.mu is held.
func (s *session) takeLate(u *update) {
	text := u.Content.text()
	if !s.late.expected || u.Kind != updateMessage || text == "" {
		return
	}
	s.process.late.Store(true)
	s.late.text.WriteString(text)
	s.late.last = s.process.opts.Now()
	if s.late.timer != nil {
		s.late.timer.Stop()
	}
	s.late.timer = time.AfterFunc(lateQuiet, s.showLate)
}

// showLate shows what takeLate took.
func (s *session) showLate() {
	s.mu.Lock()
	text := s.late.text.String()
	s.late.text.Reset()
	if s.late.timer != nil {
		s.late.timer.Stop()
		s.late.timer = nil
	}
	s.mu.Unlock()
	if text != "" && s.process.opts.Background != nil {
		s.process.opts.Background(s.conversation, cli.BackgroundResult{Result: cli.Result{Text: text}})
	}
}

// awaitLate waits until an agent that was seen to speak late has been quiet, so that nothing of the last answer gets into the next one.
func (s *session) awaitLate(ctx context.Context) {
	defer s.showLate()
	for s.process.late.Load() {
		s.mu.Lock()
		left := lateQuiet - s.process.opts.Now().Sub(s.late.last)
		expected := s.late.expected
		s.mu.Unlock()
		if !expected || left <= 0 {
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
