package turn

import (
	"context"
	"time"

	"ductor/cli"
)

// Mark stores m as the start of a turn. The turn starts after the lines that have been handled so far. Mark sets
// m.Output and m.Input. It does nothing if m.Turn is empty.
//
// The method Turn calls Mark. The callback StreamOptions.Idle must call MarkIdle, because Mark would block.
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

// MarkIdle stores m as the start of a turn; see Mark. Only the callback StreamOptions.Idle may call MarkIdle. The turn
// starts after the line that Idle received.
func (s *Stream) MarkIdle(ctx context.Context, m cli.Mark) error {
	m.Output = s.lines.handled // the router holds its lock while it calls Idle, so s.lines.offset would deadlock
	return s.process.Begin(ctx, m)
}

// flush waits until all input of earlier turns is written.
func (s *Stream) flush(ctx context.Context) error {
	if s.in.idle() {
		return nil
	}
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

// Past is the part of the output, between two offsets, that the program printed before ductor attached. The Stream
// replays it.
type Past struct {
	From, Until int64
}

// CaughtUp returns a channel that is closed when all output from before ductor attached was handled.
func (s *Stream) CaughtUp() <-chan struct{} { return s.lines.caught }
