package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Limits say what is kept: what is younger than Age, and of that the newest of Bytes. 0 is no limit.
type Limits struct {
	Age   time.Duration
	Bytes int64
}

// Cut is Limits at a moment: what is older than Before goes, and then the oldest until Bytes are left. A zero Before
// and 0 Bytes are no limit.
type Cut struct {
	Before time.Time
	Bytes  int64
}

// Trimmed is what a cut takes, or would take, and what it leaves.
type Trimmed struct {
	Items, Bytes         int64
	LeftItems, LeftBytes int64
}

// Take counts things that go among those that are left so far. Negative numbers take that back.
func (t *Trimmed) Take(items, bytes int64) {
	t.Items, t.Bytes, t.LeftItems, t.LeftBytes = t.Items+items, t.Bytes+bytes, t.LeftItems-items, t.LeftBytes-bytes
}

// Goes says whether a thing goes that was used last at a time, where t is what goes before it.
func (c Cut) Goes(t Trimmed, used time.Time) bool {
	return !c.Before.IsZero() && used.Before(c.Before) || c.Bytes != 0 && t.LeftBytes > c.Bytes
}

// Shelf is one kind of thing that piles up. Safe for concurrent use.
type Shelf interface {
	// Plan says what Trim would take, and takes nothing.
	Plan(ctx context.Context, c Cut) (Trimmed, error)
	// Trim takes it. What was taken before an error is counted.
	Trim(ctx context.Context, c Cut) (Trimmed, error)
}

// Kept is a shelf with its name and limits.
type Kept struct {
	Name   string // "uploads", "transcripts", "audit", "runs"
	Shelf  Shelf
	Limits Limits
}

// Retention forgets what is old or too much. All fields are required.
type Retention struct {
	Shelves func() []Kept // now
	Now     func() time.Time
	Logger  *slog.Logger
	Every   time.Duration // between two rounds
}

// Forgot is the line of one shelf in a report.
type Forgot struct {
	Name string
	Trimmed
	Err error // this shelf could not be cut; the others were
}

// DryRun says what a round would take now, for users to see before they trust it. It changes nothing.
func (r Retention) DryRun(ctx context.Context) []Forgot {
	return r.round(ctx, Shelf.Plan)
}

// Trim does one round now.
func (r Retention) Trim(ctx context.Context) []Forgot {
	return r.round(ctx, Shelf.Trim)
}

func (r Retention) round(ctx context.Context, f func(Shelf, context.Context, Cut) (Trimmed, error)) []Forgot {
	var all []Forgot
	for _, k := range r.Shelves() {
		line := Forgot{Name: k.Name}
		line.Trimmed, line.Err = f(k.Shelf, ctx, k.Limits.at(r.Now()))
		if line.Err != nil {
			line.Err = fmt.Errorf("%s: %w", k.Name, line.Err)
		}
		all = append(all, line)
	}
	return all
}

func (l Limits) at(now time.Time) Cut {
	c := Cut{Bytes: l.Bytes}
	if l.Age > 0 {
		c.Before = now.Add(-l.Age)
	}
	return c
}

// Run does a round at once and then every so often, until ctx is done.
func (r Retention) Run(ctx context.Context) {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for {
		for _, line := range r.Trim(ctx) {
			if line.Err != nil && !errors.Is(line.Err, context.Canceled) {
				r.Logger.Warn("forget what is old", "what", line.Name, "err", line.Err)
			}
			if line.Items > 0 {
				r.Logger.Info("forgot what is old", "what", line.Name, "items", line.Items, "bytes", line.Bytes)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
