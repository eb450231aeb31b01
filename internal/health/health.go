package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/orchestrator"
)

// Store is the part of the store that Health tests.
type Store interface {
	// TryWrite makes a small write. It returns after the data has reached the disk.
	TryWrite(ctx context.Context) error
	// Disk returns the state of the disk, and a context that ends when the state changes.
	Disk() (orchestrator.DiskState, context.Context)
}

// Options configures a Health. All fields are required.
type Options struct {
	Store Store
	Poll  time.Duration // maximum duration of a poll, including the handling of its updates
	Now   func() time.Time
}

// Health tracks the state of polling and the store. Safe for concurrent use.
type Health struct {
	opts   Options
	polled chan struct{} // signals that Telegram has answered a poll; capacity 1

	mu    sync.Mutex
	poll  polling
	store writing
}

type polling struct {
	answered time.Time // time of Telegram's last answer; zero before the first
	failed   bool
	due      time.Time // deadline for the end of the next poll; zero before the first
}

type writing struct {
	began time.Time // start of the current write; zero for none
	ended time.Time // end of the last write; zero before the first
	err   error
}

// New returns a Health for which nothing has been reported yet.
func New(o Options) *Health { return &Health{opts: o, polled: make(chan struct{}, 1)} }

// Polled records the result of a poll. The parameter wait is the planned pause before the next poll. Polled never
// blocks.
func (h *Health) Polled(err error, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	h.poll.failed, h.poll.due = err != nil, now.Add(wait+h.opts.Poll)
	if err != nil {
		return
	}
	h.poll.answered = now
	select {
	case h.polled <- struct{}{}:
	default:
	}
}

// tryStore makes a test write. If the disk is broken, the write may block; State then reports the store as Stuck.
func (h *Health) tryStore(ctx context.Context) {
	h.mu.Lock()
	h.store.began = h.opts.Now()
	h.mu.Unlock()
	err := h.opts.Store.TryWrite(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store.began = time.Time{}
	if errors.Is(err, context.Canceled) {
		return // ductor is shutting down
	}
	h.store.ended, h.store.err = h.opts.Now(), err
}

// Status is the status of a part of ductor.
type Status string

const (
	OK       Status = "ok"
	Starting Status = "starting" // the state is not known yet
	Failing  Status = "failing"  // calls return errors
	Full     Status = "full"     // the disk is full; only for State.Store
	Stuck    Status = "stuck"    // a call does not return
)

const (
	// failsAfter is how long Telegram may be unreachable before polling counts as failing. Short interruptions are
	// normal.
	failsAfter = 2 * time.Minute
	// writeTimeout is how long a write may take before the store counts as stuck.
	writeTimeout = 30 * time.Second
)

// State is the status of all parts of ductor.
type State struct {
	Polling Status
	Store   Status
	// Answered is the time of Telegram's last answer, or zero before the first answer. Wrote is the end of the last
	// test write, even if the write failed.
	Answered, Wrote time.Time
}

// OK reports whether users get answers.
func (s State) OK() bool { return s.Polling == OK && s.Store == OK }

func (s State) restartHelps() bool {
	return s.Polling == Stuck || s.Store == Stuck || s.Store == Failing
}

// State returns the current state.
func (h *Health) State() State {
	disk, _ := h.opts.Store.Disk()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	return State{
		Polling: h.poll.status(now), Store: h.store.status(now, disk), Answered: h.poll.answered, Wrote: h.store.ended,
	}
}

func (p polling) status(now time.Time) Status {
	switch {
	case p.due.IsZero():
		return Starting
	case now.After(p.due):
		return Stuck
	case p.failed && now.Sub(p.answered) > failsAfter:
		return Failing
	case p.answered.IsZero():
		return Starting
	}
	return OK
}

func (w writing) status(now time.Time, disk orchestrator.DiskState) Status {
	switch {
	case disk == orchestrator.DiskFull:
		return Full
	case !w.began.IsZero() && now.Sub(w.began) > writeTimeout:
		return Stuck
	case disk == orchestrator.DiskFailed || disk == orchestrator.DiskDamaged || w.err != nil:
		return Failing
	case w.ended.IsZero():
		return Starting
	}
	return OK
}
