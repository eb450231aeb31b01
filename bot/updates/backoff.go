package updates

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	backoffBase = time.Second
	maxBackoff  = 15 * time.Second // short, so that users get an answer soon after the network works again
)

// backoff computes the pauses between repeated attempts. The pause doubles with each failure, up to maxBackoff.
type backoff struct {
	tries  int
	jitter func(time.Duration) time.Duration
}

func (b *backoff) next() time.Duration {
	b.tries++
	return b.jitter(min(backoffBase<<min(b.tries-1, 6), maxBackoff))
}

// level returns the log level for the last failure. The first failure is often only a stale connection, so it is not a
// warning. After many failures in a row, only every eighth failure is a warning.
func (b *backoff) level() slog.Level {
	const each = 8
	switch {
	case b.tries == 1:
		return slog.LevelInfo
	case b.tries < each || b.tries%each == 0:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// jitter returns a random duration between d/2 and d, so that many clients do not all retry at the same time.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
