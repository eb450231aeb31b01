package turn

import (
	"context"
	"time"

	"ductor/cli"
)

// Mark stores m with the process, unless m has no Turn. The turn of m starts after the lines handled so far; Mark fills
// in Output and Input. Turn calls Mark. Code in Idle must call MarkIdle instead.
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

// MarkIdle is like Mark, for code in Idle. The turn of m starts after the current line.
func (s *Stream) MarkIdle(ctx context.Context, m cli.Mark) error {
	m.Output = s.lines.handled // Idle is called with the router's lock held
	return s.process.Begin(ctx, m)
}

// flush waits until all queued input is written, because that input belongs before the next mark.
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

// Past describes output that the program wrote before ductor attached, between the offsets From and Until. The Stream
// replays it.
type Past struct {
	From, Until int64
}

// CaughtUp returns a channel that is closed once Idle or a turn has handled all output from before ductor attached.
func (s *Stream) CaughtUp() <-chan struct{} { return s.lines.caught }
