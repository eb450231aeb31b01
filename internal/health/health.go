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
	// TryWrite makes a small write and returns when it is on the disk.
	TryWrite(ctx context.Context) error
	// Disk returns the state of the disk, and a context that is done when the state changes.
	Disk() (orchestrator.DiskState, context.Context)
}

// Options configures a Health. All fields are required.
type Options struct {
	Store Store
	Poll  time.Duration // time limit of a poll, including the handling of its updates
	Now   func() time.Time
}

// Health tracks the state of polling and the store. Safe for concurrent use.
type Health struct {
	opts   Options
	polled chan struct{} // capacity 1; signals the first answer of Telegram

	mu    sync.Mutex
	poll  polling
	store writing
}

// polling describes the last poll.
type polling struct {
	answered time.Time // time of Telegram's last answer; zero for never
	failed   bool      // the last poll failed
	due      time.Time // deadline of the next poll; zero before the first
}

// writing is the state of the test writes.
type writing struct {
	began time.Time // start of the current write; zero for none
	ended time.Time // end of the last write; zero before the first
	err   error
}

// New returns a Health without any observations.
func New(o Options) *Health { return &Health{opts: o, polled: make(chan struct{}, 1)} }

// Polled records the end of a poll and how long the poller waits before the next one. It never blocks.
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

// tryStore makes a test write. A broken disk may block the write; State reports that.
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
	Starting Status = "starting" // unknown yet
	Failing  Status = "failing"  // it returns errors
	Full     Status = "full"     // the disk is full; only for the store
	Stuck    Status = "stuck"    // it does not return
)

const (
	// failsAfter is how long Telegram may be silent before polling counts as failing. Single lost connections are
	// normal.
	failsAfter = 2 * time.Minute
	// writeTimeout limits a write on a slow disk.
	writeTimeout = 30 * time.Second
)

// State describes all parts.
type State struct {
	Polling Status
	Store   Status
	// Answered is the time of Telegram's last answer; zero means never. Wrote is the end of the last test write,
	// which may have failed.
	Answered, Wrote time.Time
}

// OK reports whether users get answers.
func (s State) OK() bool { return s.Polling == OK && s.Store == OK }

// restartHelps reports whether a restart may help; see the package comment.
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
