package turn

import (
	"context"
	"time"

	"ductor/cli"
)

// Mark stores m with the process. The turn of m starts after the lines that were handled until now; Mark fills in
// Output and Input. It does not store a Mark without a Turn. Turn calls Mark. Idle must use MarkIdle instead.
func (s *Stream) Mark(ctx context.Context, m cli.Mark) error {
	if m.Turn == "" {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	m.Output = s.lines.offset()
	return s.process.Begin(ctx, m)
}

// MarkIdle is Mark for Idle. The turn of m starts after the current line.
func (s *Stream) MarkIdle(ctx context.Context, m cli.Mark) error {
	m.Output = s.lines.handled // idle is called with the lock
	return s.process.Begin(ctx, m)
}

// flush returns when all queued input is written, because that input is not part of the next mark.
func (s *Stream) flush(ctx context.Context) error {
	flushed := make(chan struct{})
	if s.in.Put(Parcel{Sent: func(error) { close(flushed) }}) != nil {
		return nil // the writer has stopped
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

// Past is output of a run that the program wrote before ductor attached. It lies between the offsets From and Until.
// The Stream replays it.
type Past struct {
	From, Until int64
}

// CaughtUp returns a channel that is closed once Idle or a turn has handled all output from before ductor attached.
func (s *Stream) CaughtUp() <-chan struct{} { return s.lines.caught }
