package heartbeat_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var here = orchestrator.ConversationID{Chat: 7, Topic: 3}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// house is a scheduler with all around it.
type house struct {
	*heartbeat.Scheduler
	store *memory
	desk  *desk
	chat  *chat
	mu    sync.Mutex
	skew  time.Duration
	wall  time.Time // what the clock shows, if it is set; else that of the bubble, moved by skew
	ids   int
	stop  func()
}

func (h *house) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wall.IsZero() {
		return h.wall
	}
	return time.Now().Add(h.skew)
}

func (h *house) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew += d
}

func (h *house) id() string {
	h.ids++
	return fmt.Sprint("j", h.ids)
}

// build makes a house whose clock shows start. Its scheduler is not running.
func build(t testing.TB, start time.Time, change ...func(*heartbeat.Options)) *house {
	h := &house{store: &memory{runs: map[heartbeat.RunID]*heartbeat.Run{}}, chat: &chat{known: map[heartbeat.RunID]bool{}}, desk: &desk{turns: map[cli.TurnID]*orchestrator.Turn{}}}
	h.skew = time.Until(start)
	h.desk.now = h.now
	h.renew(change...)
	return h
}

// renew gives the house a new scheduler over what is stored, as after a crash.
func (h *house) renew(change ...func(*heartbeat.Options)) {
	opts := heartbeat.Options{Store: h.store, Runner: h.desk, Notifier: h.chat, Now: h.now, NewID: h.id,
		Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&opts)
	}
	h.Scheduler = heartbeat.New(opts)
}

// start runs the scheduler until halt.
func (h *house) start(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	h.stop = func() { cancel(); <-done }
}

// lazily has the scheduler look at the clock every few hours, so that a year is short.
func lazily(o *heartbeat.Options) { o.Nap = 6 * time.Hour }

func in(name string) func(*heartbeat.Options) {
	return func(o *heartbeat.Options) {
		loc, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		o.Zone = loc
	}
}

func (h *house) add(t testing.TB, schedule string, change ...func(*heartbeat.Job)) heartbeat.Standing {
	t.Helper()
	j := heartbeat.Job{Conversation: here, Person: 9, Prompt: "look", Schedule: schedule}
	for _, f := range change {
		f(&j)
	}
	st, err := h.Add(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (h *house) get(t testing.TB, id heartbeat.JobID) heartbeat.Standing {
	t.Helper()
	st, err := h.Get(context.Background(), id, here)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
