package supervisor

import (
	"context"
	"sync"
	"time"
)

// longestGrace is longer than anybody waits; every call brings its own.
const longestGrace = 24 * time.Hour

// ender ends a tree, once at a time whoever asks. Safe for concurrent use.
type ender struct {
	tree func() *Tree

	mu  sync.Mutex
	run *ending
}

type ending struct {
	hurry context.CancelFunc // the grace is over
	done  chan struct{}
	err   error // after done
}

// end returns when nothing is left. Callers share one ending, and the shortest grace among them counts.
func (e *ender) end(grace time.Duration) error {
	run := e.join()
	if grace <= 0 {
		run.hurry()
	} else {
		timer := time.AfterFunc(grace, run.hurry)
		defer timer.Stop()
	}
	<-run.done
	return run.err
}

func (e *ender) join() *ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.run != nil {
		return e.run
	}
	ctx, hurry := context.WithCancel(context.Background())
	run := &ending{hurry: hurry, done: make(chan struct{})}
	e.run = run
	go func() { // every caller waits for it
		run.err = e.tree().End(ctx, longestGrace)
		hurry()
		e.mu.Lock()
		e.run = nil
		e.mu.Unlock()
		close(run.done)
	}()
	return run
}
