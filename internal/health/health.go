package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/orchestrator"
)

// Store is the part of the store that is tried.
type Store interface {
	// TryWrite writes something small, and returns when it is on the disk.
	TryWrite(ctx context.Context) error
	// Disk is the state of the disk, and a context that is done once that has changed.
	Disk() (orchestrator.DiskState, context.Context)
}

// Options configure a Health. All are required.
type Options struct {
	Store Store
	Poll  time.Duration // how long a poll may take, with what is done about its updates
	Now   func() time.Time
}

// Health collects what is known of polling and the store. Safe for concurrent use.
type Health struct {
	opts   Options
	polled chan struct{} // capacity 1: Telegram answered for the first time

	mu    sync.Mutex
	poll  polling
	store writing
}

// polling is what the poller said last.
type polling struct {
	answered time.Time // when Telegram answered last; zero for never
	failed   bool      // the last poll
	due      time.Time // until then the next poll has ended; zero before the first
}

// writing is what is known of the writes that are tried.
type writing struct {
	began time.Time // of the one that runs; zero for none
	ended time.Time // of the last one; zero before the first
	err   error
}

// New makes a Health that knows nothing yet.
func New(o Options) *Health { return &Health{opts: o, polled: make(chan struct{}, 1)} }

// Polled takes the end of a poll, and how long the poller waits before the next. It waits for nothing.
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

// tryStore tries a write. It returns when the write does, which a broken disk may prevent: then State says so.
func (h *Health) tryStore(ctx context.Context) {
	h.mu.Lock()
	h.store.began = h.opts.Now()
	h.mu.Unlock()
	err := h.opts.Store.TryWrite(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store.began = time.Time{}
	if errors.Is(err, context.Canceled) {
		return // ductor ends
	}
	h.store.ended, h.store.err = h.opts.Now(), err
}

// Status is the state of a part.
type Status string

// The states of parts.
const (
	OK       Status = "ok"
	Starting Status = "starting" // nothing is known yet
	Failing  Status = "failing"  // it answers with errors
	Full     Status = "full"     // of the store: the disk has no room
	Stuck    Status = "stuck"    // it does not come back
)

const (
	// failsAfter is how long Telegram may not have answered before polling counts as failing: one lost connection is no news.
	failsAfter = 2 * time.Minute
	// writeWait is how long a write may take on a slow disk.
	writeWait = 30 * time.Second
)

// State is how the parts are.
type State struct {
	Polling Status
	Store   Status
	// Answered is when Telegram answered last; zero for never. Wrote is when a write that was tried last succeeded or failed.
	Answered, Wrote time.Time
}

// OK says whether users get answers.
func (s State) OK() bool { return s.Polling == OK && s.Store == OK }

// mendable says whether a restart may mend what is wrong; see the package.
func (s State) mendable() bool {
	return s.Polling == Stuck || s.Store == Stuck || s.Store == Failing
}

// State says how the parts are now.
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
	case !w.began.IsZero() && now.Sub(w.began) > writeWait:
		return Stuck
	case disk == orchestrator.DiskFailed || disk == orchestrator.DiskDamaged || w.err != nil:
		return Failing
	case w.ended.IsZero():
		return Starting
	}
	return OK
}
