package heartbeat_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// agents is the runs that a sweep sees. One that was ended takes until the sweep after the next to go.
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

// TestTheSweepEndsWhatIsFarTooOld: by the wall clock, each kind at its age, and says so once.
func TestTheSweepEndsWhatIsFarTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		start, skew := time.Now(), time.Duration(0)
		job := orchestrator.JobRun{ID: "nightly"}.Turn()
		a := &agents{ended: map[cli.TurnID]int{}, runs: []cli.RunInfo{{Turn: "asked", Started: start}, {Turn: job, Started: start},
			{Turn: "young", Started: start.Add(7 * time.Hour)}}}
		var told []cli.TurnID
		s := heartbeat.NewSweep(heartbeat.SweepOptions{
			Runs: a, Logger: slog.New(slog.DiscardHandler),
			Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(skew) },
			Notice: func(_ context.Context, i cli.RunInfo) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, i.Turn)
			},
			Ages: map[heartbeat.RunKind]time.Duration{heartbeat.RunOfChat: 2 * time.Hour, heartbeat.RunOfJob: 6 * time.Hour},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		after := func(d time.Duration, want ...cli.TurnID) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("after %s: %s", time.Since(start)+skew, diff)
			}
		}
		after(2 * time.Hour)
		after(5*time.Minute, "asked")
		mu.Lock()
		skew = 5 * time.Hour // the machine slept
		mu.Unlock()
		after(5*time.Minute, "asked", job)
		cancel()
		<-done
	})
}
