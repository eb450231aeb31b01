package heartbeat_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

func TestMain(m *testing.M) { testprogram.Main(m) }

// friday is the time of most tests.
var friday = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var here = orchestrator.ConversationID{Chat: 7, Topic: 3}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// rig is a scheduler with its fakes.
type rig struct {
	*heartbeat.Scheduler
	store  *memory
	runner *runner
	chat   *chat
	mu     sync.Mutex
	skew   time.Duration
	wall   time.Time // if set, the clock shows this time; else that of the bubble plus skew
	ids    int
	stop   func()
}

func (h *rig) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wall.IsZero() {
		return h.wall
	}
	return time.Now().Add(h.skew)
}

func (h *rig) moveClock(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew += d
}

func (h *rig) newID() string {
	h.ids++
	return fmt.Sprint("j", h.ids)
}

// newRig returns a rig whose clock shows start. Its scheduler is not running.
func newRig(t testing.TB, start time.Time, change ...func(*heartbeat.Options)) *rig {
	h := &rig{store: &memory{runs: map[orchestrator.JobRunID]*orchestrator.JobRun{}},
		chat:   &chat{known: map[orchestrator.JobRunID]bool{}},
		runner: &runner{turns: map[cli.TurnID]*orchestrator.Turn{}}}
	h.skew = time.Until(start)
	h.runner.now = h.now
	h.replaceScheduler(change...)
	return h
}

// replaceScheduler creates a new scheduler on the same store, as after a crash.
func (h *rig) replaceScheduler(change ...func(*heartbeat.Options)) {
	opts := heartbeat.Options{Store: h.store, Runner: h.runner, Notifier: h.chat, Now: h.now, NewID: h.newID,
		Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&opts)
	}
	h.Scheduler = heartbeat.New(opts)
}

// start runs the scheduler until stop.
func (h *rig) start(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	h.stop = func() { cancel(); <-done }
}

// withSlowPoll lets the scheduler read the clock only every few hours, so that a year takes little time.
func withSlowPoll(o *heartbeat.Options) { o.Poll = 6 * time.Hour }

func withZone(name string) func(*heartbeat.Options) {
	return func(o *heartbeat.Options) {
		loc, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		o.Zone = loc
	}
}

func (h *rig) add(t testing.TB, schedule string, change ...func(*orchestrator.Job)) orchestrator.JobStatus {
	t.Helper()
	j := orchestrator.Job{
		Conversation: here, Person: 9, Prompt: "look",
		JobTiming: orchestrator.JobTiming{Schedule: schedule},
	}
	for _, f := range change {
		f(&j)
	}
	st, err := h.Add(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (h *rig) get(t testing.TB, id orchestrator.JobID) orchestrator.JobStatus {
	t.Helper()
	st, err := h.Get(context.Background(), id, here)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
