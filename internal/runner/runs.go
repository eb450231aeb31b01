package runner

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// runTable contains the runs of a runner: those that are being started, and those that have started, until their files
// are deleted. It also decides whether new starts are allowed. The zero value is empty and allows new starts. Safe for
// concurrent use.
type runTable struct {
	mu       sync.Mutex
	agents   map[string]*agent // by ID of the run
	idleFrom time.Duration     // time since boot at which an agent was last running

	pending   map[string]chan struct{} // current starts, by ID of the run; the channel is closed when the start is over
	ended     time.Duration            // time since boot at which the last start ended
	forbidden int                      // number of calls of forbid and forbidIfIdle that allow has not undone
	// terminated contains SIGTERM if the runner has received it. Nobody takes the signal out of the channel, so an
	// upgrade finds it there even if enforceDeadlines has not handled the signal yet.
	terminated chan os.Signal
}

func (r *runTable) add(a *agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agents == nil {
		r.agents = map[string]*agent{}
	}
	r.agents[a.record.ID] = a
}

func (r *runTable) remove(a *agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.agents, a.record.ID)
	r.idleFrom = sinceBoot()
}

// find returns a run. If the run is being started, find waits until it has started.
func (r *runTable) find(id string) (*agent, error) {
	r.await(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.agents[id]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("run %s does not exist: %w", id, syscall.ENOENT)
}

func (r *runTable) contains(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agents[id] != nil
}

// all returns all runs that have started, the oldest first.
func (r *runTable) all() []*agent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.agents), func(a, b *agent) int {
		return a.record.Started.Compare(b.record.Started)
	})
}

// idleSince returns the last time at which an agent was running. It returns false if the table contains a run.
func (r *runTable) idleSince() (from time.Duration, empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.idleFrom, len(r.agents) == 0
}

// noteBusy records that an agent is running or starting.
func (r *runTable) noteBusy(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idleFrom = now
}

// begin registers the start of a run, so that other requests can wait for the end of the start. The caller must call
// done when the start has succeeded or failed.
func (r *runTable) begin(id string) (done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.forbidden > 0:
		return nil, fmt.Errorf("the runner is about to leave: %w", syscall.ESHUTDOWN)
	case r.pending[id] != nil:
		return nil, fmt.Errorf("run %s is being started: %w", id, syscall.EEXIST)
	case r.pending == nil:
		r.pending = map[string]chan struct{}{}
	}
	there := make(chan struct{})
	r.pending[id] = there
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, id)
		r.ended = sinceBoot()
		close(there)
	}, nil
}

// await waits until the start of the run with this ID has ended. If id is empty, it waits for all starts in progress.
func (r *runTable) await(id string) {
	r.mu.Lock()
	pending := maps.Clone(r.pending)
	r.mu.Unlock()
	for name, there := range pending {
		if id == "" || id == name {
			<-there
		}
	}
}

// forbid forbids new starts, until the caller calls allow.
func (r *runTable) forbid() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forbidden++
}

// forbidIfIdle forbids new starts and returns true, if no start is in progress and none has ended since the given time.
// Otherwise, or if new starts are already forbidden, it does nothing and returns false.
func (r *runTable) forbidIfIdle(since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forbidden > 0 || len(r.pending) > 0 || r.ended >= since {
		return false
	}
	r.forbidden++
	return true
}

// allow undoes one call of forbid or forbidIfIdle.
func (r *runTable) allow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forbidden--
}
