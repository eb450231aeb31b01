package turn

import (
	"context"
	"time"

	"ductor/cli"
)

// Mark stores m as the start of a turn, which follows the lines handled so far. Mark sets Output and Input, and does
// nothing if m has no Turn. Turn calls it. The callback Idle must call MarkIdle instead.
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

// MarkIdle is Mark for the callback Idle. The turn of m starts after the line that Idle is handling.
func (s *Stream) MarkIdle(ctx context.Context, m cli.Mark) error {
	m.Output = s.lines.handled // the router calls Idle with its lock held, so offset would block
	return s.process.Begin(ctx, m)
}

// flush waits until all queued input is written, because that input belongs to earlier turns.
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

// Past is the part of the output, between two offsets, that the program printed before ductor attached. The Stream
// replays it.
type Past struct {
	From, Until int64
}

// CaughtUp returns a channel that is closed when all output from before ductor attached was handled.
func (s *Stream) CaughtUp() <-chan struct{} { return s.lines.caught }
