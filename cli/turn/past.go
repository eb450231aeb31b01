package turn

import (
	"context"

	"ductor/cli"
)

// Past is what a run printed before its process was attached to, from the offset From to the offset Until: it
// is caught up with.
type Past struct {
	From, Until int64
}

// CaughtUp is closed once Idle or a turn has had all that was said before ductor listened.
func (s *Stream) CaughtUp() <-chan struct{} { return s.caught }

// awaitPast keeps a turn that is not the adopted one from taking what was said before for its own.
func (s *Stream) awaitPast(ctx context.Context, m cli.Mark) {
	s.mu.Lock()
	goesOn := s.to == noTurn // else it waits for the turn
	s.mu.Unlock()
	if m.Turn == "" || !goesOn {
		return
	}
	select {
	case <-s.caught:
	case <-s.pumped:
	case <-ctx.Done():
	}
}
