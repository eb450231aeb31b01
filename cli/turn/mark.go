package turn

import (
	"context"
	"errors"
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
	s.dispatch.Lock()
	m.Output = s.handled
	s.dispatch.Unlock()
	return s.process.Begin(ctx, m)
}

// flush returns when all that was sent so far is written: it is no part of what is marked next.
func (s *Stream) flush(ctx context.Context) error {
	flushed := make(chan struct{})
	if !s.in.offer(queued{flushed: flushed}) {
		return nil // nothing is written any more
	}
	wait := time.NewTimer(s.opts.Stall)
	defer wait.Stop()
	select {
	case <-flushed:
		return nil
	case <-s.written:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return errInputFull
	}
}

// unmarked ends a turn of which it would be unknown later whether it had begun. Nothing was sent of it.
func (t *turn) unmarked(err error) End {
	if t.ctx.Err() == nil {
		t.s.markErr = err
		return t.stopNow(EndExit)
	}
	if errors.Is(context.Cause(t.ctx), cli.ErrDetached) {
		t.s.Detach()
		return EndDetached
	}
	return t.stopNow(EndCancelled)
}

func (t *turn) stopNow(why End) End {
	t.cut, t.cutAt = why, time.Now()
	t.stop()
	return t.run()
}
