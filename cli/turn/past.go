package turn

import (
	"context"
	"time"

	"ductor/cli"
)

// Past is what a run printed before its process was attached to, from the offset From to the offset Until: it
// is caught up with.
type Past struct {
	From, Until int64
	// Reached is called like Idle, once Idle has had all of it. Nil is for who has a turn to learn it from.
	Reached func()
}

// Clock gives now for what is said from now on, and the time at which it was said for a line that is only
// caught up with. The function is for the goroutine of a turn, and for Idle.
func (s *Stream) Clock(now func() time.Time) func() time.Time {
	return func() time.Time {
		if !s.past.Load() {
			return now()
		}
		if at := s.process.When(s.spoken.Load()); !at.IsZero() {
			return at
		}
		return now()
	}
}

// awaitPast keeps a turn that is not the adopted one from taking what was said before for its own.
func (s *Stream) awaitPast(ctx context.Context, m cli.Mark) {
	s.mu.Lock()
	goesOn := s.to == noTurn // else it waits for the turn
	s.mu.Unlock()
	if m.Turn == "" || s.opts.Past == nil || !goesOn {
		return
	}
	select {
	case <-s.caught:
	case <-s.pumped:
	case <-ctx.Done():
	}
}
