package runner

import (
	"fmt"
	"maps"
	"os"
	"sync"
	"syscall"
	"time"
)

// starts tracks the starts of runs that are in progress, and decides whether new starts are allowed. The zero value
// allows new starts. Safe for concurrent use.
type starts struct {
	mu        sync.Mutex
	pending   map[string]chan struct{} // closed at the end of the start; the key is the ID of the run
	ended     time.Duration            // when the last start ended, since boot
	forbidden int                      // number of callers of forbid: an upgrade, and the end of the runner
	// terminated contains the first SIGTERM. Nothing receives from it, so an upgrade also sees a signal that
	// enforceDeadlines has not handled yet.
	terminated chan os.Signal
}

// begin registers the start of a run, so that other requests can wait for the end of the start. The caller must call
// done when the start has succeeded or failed.
func (s *starts) begin(id string) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.forbidden > 0:
		return nil, fmt.Errorf("the runner is about to leave: %w", syscall.ESHUTDOWN)
	case s.pending[id] != nil:
		return nil, fmt.Errorf("run %s is being started: %w", id, syscall.EEXIST)
	case s.pending == nil:
		s.pending = map[string]chan struct{}{}
	}
	there := make(chan struct{})
	s.pending[id] = there
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, id)
		s.ended = sinceBoot()
		close(there)
	}, nil
}

// await waits until the start of the run with this ID has ended. If id is empty, it waits for all starts in progress.
func (s *starts) await(id string) {
	s.mu.Lock()
	pending := maps.Clone(s.pending)
	s.mu.Unlock()
	for name, there := range pending {
		if id == "" || id == name {
			<-there
		}
	}
}

// forbid forbids new starts, until the caller calls allow.
func (s *starts) forbid() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden++
}

// forbidIfIdle is like forbid if new starts are allowed, no start is in progress, and no start has ended since the
// given time. Otherwise forbidIfIdle does nothing and returns false.
func (s *starts) forbidIfIdle(since time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forbidden > 0 || len(s.pending) > 0 || s.ended >= since {
		return false
	}
	s.forbidden++
	return true
}

// allow undoes one call of forbid or forbidIfIdle.
func (s *starts) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden--
}
