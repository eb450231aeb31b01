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
