package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Limits configures how much data remains. Data older than Age is removed. Of the other data, only the newest Bytes
// remain. 0 means no limit.
type Limits struct {
	Age   time.Duration
	Bytes int64
}

// Cutoff is like Limits, but contains a time instead of an age. First, data older than Before is removed. Then the
// oldest data is removed until at most Bytes remain. A zero Before, or 0 Bytes, means no limit.
type Cutoff struct {
	Before time.Time
	Bytes  int64
}

// TrimStats counts the data that Trim removes (Items, Bytes) and the data that remains (LeftItems, LeftBytes).
type TrimStats struct {
	Items, Bytes         int64
	LeftItems, LeftBytes int64
}

// CountRemoved subtracts items and bytes from the remaining data and adds them to the removed data.
func (t *TrimStats) CountRemoved(items, bytes int64) {
	t.Items, t.Bytes, t.LeftItems, t.LeftBytes = t.Items+items, t.Bytes+bytes, t.LeftItems-items, t.LeftBytes-bytes
}

// Removes reports whether Trim must remove an item that was last used at the given time. t contains the statistics of
// Trim so far.
func (c Cutoff) Removes(t TrimStats, used time.Time) bool {
	return !c.Before.IsZero() && used.Before(c.Before) || c.Bytes != 0 && t.LeftBytes > c.Bytes
}

// Dataset is data that grows until Retention removes some of it, such as uploads. Safe for concurrent use.
type Dataset interface {
	// Plan returns the result that Trim would have, without removing anything.
	Plan(ctx context.Context, c Cutoff) (TrimStats, error)
	// Trim removes data that is older than c.Before, and then the oldest data until c.Bytes remain. If it fails, it
	// returns the error and the statistics so far.
	Trim(ctx context.Context, c Cutoff) (TrimStats, error)
}

// RetentionRule limits a Dataset.
type RetentionRule struct {
	Name    string // "uploads", "transcripts", "audit", "runs"
	Dataset Dataset
	Limits  Limits
}

// Retention removes data that exceeds its limits, at regular intervals. All fields are required.
type Retention struct {
	Rules  func() []RetentionRule // returns the current rules
	Now    func() time.Time
	Logger *slog.Logger
	Every  time.Duration // interval between two calls of Trim
}

// RetentionResult is the result of Trim or DryRun for one Dataset.
type RetentionResult struct {
	Name string
	TrimStats
	Err error // error of this Dataset; it does not affect other Datasets
}

// DryRun returns the result that Trim would have, without removing anything.
func (r Retention) DryRun(ctx context.Context) []RetentionResult {
	return r.round(ctx, Dataset.Plan)
}

// Trim removes the data that exceeds its limits.
func (r Retention) Trim(ctx context.Context) []RetentionResult {
	return r.round(ctx, Dataset.Trim)
}

func (r Retention) round(
	ctx context.Context, f func(Dataset, context.Context, Cutoff) (TrimStats, error),
) []RetentionResult {
	var all []RetentionResult
	for _, k := range r.Rules() {
		line := RetentionResult{Name: k.Name}
		line.TrimStats, line.Err = f(k.Dataset, ctx, k.Limits.cutoffAt(r.Now()))
		if line.Err != nil {
			line.Err = fmt.Errorf("%s: %w", k.Name, line.Err)
		}
		all = append(all, line)
	}
	return all
}

func (l Limits) cutoffAt(now time.Time) Cutoff {
	c := Cutoff{Bytes: l.Bytes}
	if l.Age > 0 {
		c.Before = now.Add(-l.Age)
	}
	return c
}

// Run calls Trim at once, and then at each interval until ctx is done.
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
