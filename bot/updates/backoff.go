package updates

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	backoffBase = time.Second
	backoffMost = 15 * time.Second // a user who has the network back does not wait long for an answer
)

// backoff counts failures in a row. The wait after one doubles with each, up to backoffMost.
type backoff struct {
	tries  int
	jitter func(time.Duration) time.Duration
}

// next counts a failure and gives how long to wait after it.
func (b *backoff) next() time.Duration {
	b.tries++
	return b.jitter(min(backoffBase<<min(b.tries-1, 6), backoffMost))
}

// level is that of the line about the last failure. The first is often a connection that went stale: it is news when it
// stays. Of a long trouble some lines are enough.
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

// jitter spreads a wait over its upper half, so that many clients do not come back at once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pause waits for d or the end of ctx.
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
