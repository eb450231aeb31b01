package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Limits configures how much data to keep: no data that is older than Age, and no more than the newest Bytes. 0 means
// no limit.
type Limits struct {
	Age   time.Duration
	Bytes int64
}

// Cut contains Limits for a certain time. It removes the data older than Before, and then the oldest data until at most
// Bytes are left. A zero Before or 0 Bytes means no limit.
type Cut struct {
	Before time.Time
	Bytes  int64
}

// Trimmed counts the data that a cut removes or would remove, and the data that is left.
type Trimmed struct {
	Items, Bytes         int64
	LeftItems, LeftBytes int64
}

// Take counts items as removed instead of left. Negative numbers undo that.
func (t *Trimmed) Take(items, bytes int64) {
	t.Items, t.Bytes, t.LeftItems, t.LeftBytes = t.Items+items, t.Bytes+bytes, t.LeftItems-items, t.LeftBytes-bytes
}

// Goes reports whether the cut removes an item that was last used at this time, after it has already removed the items
// that t counts.
func (c Cut) Goes(t Trimmed, used time.Time) bool {
	return !c.Before.IsZero() && used.Before(c.Before) || c.Bytes != 0 && t.LeftBytes > c.Bytes
}

// Shelf stores data that grows until Retention trims it, such as uploads. Safe for concurrent use.
type Shelf interface {
	// Plan returns the result of Trim without removing anything.
	Plan(ctx context.Context, c Cut) (Trimmed, error)
	// Trim removes the data. If it fails, it returns the count of what it removed until then.
	Trim(ctx context.Context, c Cut) (Trimmed, error)
}

// Kept is a Shelf with its name and limits.
type Kept struct {
	Name   string // "uploads", "transcripts", "audit", "runs"
	Shelf  Shelf
	Limits Limits
}

// Retention removes data that is too old or too large. All fields are required.
type Retention struct {
	Shelves func() []Kept // returns the current shelves
	Now     func() time.Time
	Logger  *slog.Logger
	Every   time.Duration // interval between rounds
}

// Forgot is the result of one Shelf.
type Forgot struct {
	Name string
	Trimmed
	Err error // the failure of this shelf, which does not affect the others
}

// DryRun returns what Trim would remove now, so that users can check it. It changes nothing.
func (r Retention) DryRun(ctx context.Context) []Forgot {
	return r.round(ctx, Shelf.Plan)
}

// Trim runs one round now.
func (r Retention) Trim(ctx context.Context) []Forgot {
	return r.round(ctx, Shelf.Trim)
}

func (r Retention) round(ctx context.Context, f func(Shelf, context.Context, Cut) (Trimmed, error)) []Forgot {
	var all []Forgot
	for _, k := range r.Shelves() {
		line := Forgot{Name: k.Name}
		line.Trimmed, line.Err = f(k.Shelf, ctx, k.Limits.cutAt(r.Now()))
		if line.Err != nil {
			line.Err = fmt.Errorf("%s: %w", k.Name, line.Err)
		}
		all = append(all, line)
	}
	return all
}

func (l Limits) cutAt(now time.Time) Cut {
	c := Cut{Bytes: l.Bytes}
	if l.Age > 0 {
		c.Before = now.Add(-l.Age)
	}
	return c
}

// Run runs a round immediately and then at each interval until ctx is done.
func (r Retention) Run(ctx context.Context) {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for {
		for _, line := range r.Trim(ctx) {
			if line.Err != nil && !errors.Is(line.Err, context.Canceled) {
				r.Logger.Warn("remove old data", "what", line.Name, "err", line.Err)
			}
			if line.Items > 0 {
				r.Logger.Info("removed old data", "what", line.Name, "items", line.Items, "bytes", line.Bytes)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
