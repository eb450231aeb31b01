package docker

import (
	"context"
	"io"
	"time"
)

// How long an engine may take. One that accepts and never answers is as good as none, and who waits for it must
// learn that; but a busy disk is no hanging engine.
const (
	defaultWait = 20 * time.Second // for an answer that takes no work
	workTimes   = 6                // times that for work on containers and images
	idleTimes   = 30               // times that between two words of a build or a transfer
)

// brief is a context for a question.
func (e *Engine) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.wait)
}

// work is a context for what takes a while.
func (e *Engine) work(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, workTimes*e.wait)
}

// undo is a context for taking back what was begun, also when there is no more time for that.
func (e *Engine) undo(ctx context.Context) (context.Context, context.CancelFunc) {
	return e.work(context.WithoutCancel(ctx))
}

// progress ends a context when nothing moved for long.
type progress struct {
	timer *time.Timer
	most  time.Duration
}

// progress is a context for a transfer or a build of any length, which ends when it stands still.
func (e *Engine) progress(ctx context.Context) (context.Context, *progress, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &progress{most: idleTimes * e.wait}
	p.timer = time.AfterFunc(p.most, func() { cancel(context.DeadlineExceeded) })
	return ctx, p, func() { p.timer.Stop(); cancel(nil) }
}

// of notes what is read of r as progress.
func (p *progress) of(r io.Reader) io.Reader { return &moving{p, r} }

type moving struct {
	p *progress
	r io.Reader
}

func (m *moving) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if n > 0 {
		m.p.timer.Reset(m.p.most)
	}
	return n, err
}
