package updates

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	backoffBase = time.Second
	maxBackoff  = 15 * time.Second // short, so that a user whose network works again soon gets an answer
)

// backoff counts consecutive failures. The wait doubles with each failure, up to maxBackoff.
type backoff struct {
	tries  int
	jitter func(time.Duration) time.Duration
}

// next counts a failure and returns the wait before the next attempt.
func (b *backoff) next() time.Duration {
	b.tries++
	return b.jitter(min(backoffBase<<min(b.tries-1, 6), maxBackoff))
}

// level returns the log level for the last failure. The first failure is often a stale connection, so only repeated
// failures are warnings. If failures continue, few of them are warnings.
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

// jitter returns a random duration between half of d and d, so that clients do not all return at once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pause waits for d or until ctx is done.
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
