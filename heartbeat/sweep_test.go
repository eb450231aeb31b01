package heartbeat_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// agents are the runs that a sweep sees. An ended run disappears only at the second sweep after that.
type agents struct {
	mu    sync.Mutex
	runs  []cli.RunInfo
	ended map[cli.TurnID]int
}

func (a *agents) List() []cli.RunInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs = slices.DeleteFunc(a.runs, func(i cli.RunInfo) bool { return a.ended[i.Turn] > 1 })
	return slices.Clone(a.runs)
}

func (a *agents) EndStale(turn cli.TurnID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended[turn]++
	return slices.ContainsFunc(a.runs, func(i cli.RunInfo) bool { return i.Turn == turn })
}

// TestTheSweepEndsWhatIsFarTooOld by the wall clock, for turns of users and of jobs, and logs each once.
func TestTheSweepEndsWhatIsFarTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		start, skew, log := time.Now(), time.Duration(0), &strings.Builder{}
		a := &agents{ended: map[cli.TurnID]int{}, runs: []cli.RunInfo{{Turn: "asked", Started: start},
			{Turn: orchestrator.JobRun{ID: "nightly"}.Turn(), Started: start.Add(4 * time.Hour)},
			{Turn: "young", Started: start.Add(7 * time.Hour)}}}
		s := heartbeat.Sweep{
			Runs: a, Logger: slog.New(slog.NewTextHandler(log, nil)), Every: time.Minute, Age: 2 * time.Hour,
			Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(skew) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		after := func(d time.Duration, left, lines int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			// its lock orders this read before the next write
			logged, runs := strings.Count(log.String(), "far too old"), len(a.List())
			if runs != left || logged != lines {
				t.Errorf("after %s: %d runs are left, want %d; %d lines, want %d", time.Since(start)+skew, runs, left,
					logged, lines)
			}
		}
		after(2*time.Hour, 3, 0)
		after(5*time.Minute, 2, 1)
		mu.Lock()
		skew = 5 * time.Hour // the machine slept
		mu.Unlock()
		after(5*time.Minute, 1, 2)
		cancel()
		<-done
	})
}
