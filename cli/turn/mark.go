package turn

import (
	"context"
	"time"

	"ductor/cli"
)

// Mark records with the process that m begins after the lines that were dealt with so far; Output and Input are
// filled in. A Mark without a Turn is not recorded. Turn does it; not for use from Idle.
func (s *Stream) Mark(ctx context.Context, m cli.Mark) error {
	if m.Turn == "" {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	m.Output = s.handled
	s.mu.Unlock()
	return s.process.Begin(ctx, m)
}

// MarkIdle is Mark for use from Idle: m begins after the line that it has.
func (s *Stream) MarkIdle(ctx context.Context, m cli.Mark) error {
	m.Output = s.handled
	return s.process.Begin(ctx, m)
}

// flush returns when all that was sent so far is written: it is no part of what is marked next.
func (s *Stream) flush(ctx context.Context) error {
	flushed := make(chan struct{})
	if s.in.Put(Parcel{Sent: func(error) { close(flushed) }}) != nil {
		return nil // nothing is written any more
	}
	wait := time.NewTimer(s.opts.Stall)
	defer wait.Stop()
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return ErrFull
	}
}

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
