package proctree

import (
	"context"
	"sync"
	"time"
)

// longestGrace is longer than anybody waits; every call brings its own.
const longestGrace = 24 * time.Hour

// Terminator ends a tree that Tree makes, once at a time whoever asks. Safe for concurrent use.
type Terminator struct {
	Tree func() *Tree

	mu  sync.Mutex
	run *ending
}

type ending struct {
	hurry context.CancelFunc // the grace is over
	done  chan struct{}
	err   error // after done
}

// End returns when nothing is left. Callers share one ending, and the shortest grace among them counts.
func (t *Terminator) End(grace time.Duration) error {
	run := t.join()
	if grace <= 0 {
		run.hurry()
	} else {
		timer := time.AfterFunc(grace, run.hurry)
		defer timer.Stop()
	}
	<-run.done
	return run.err
}

func (t *Terminator) join() *ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil {
		return t.run
	}
	ctx, hurry := context.WithCancel(context.Background())
	run := &ending{hurry: hurry, done: make(chan struct{})}
	t.run = run
	go func() { // every caller waits for it
		run.err = t.Tree().End(ctx, longestGrace)
		hurry()
		t.mu.Lock()
		t.run = nil
		t.mu.Unlock()
		close(run.done)
	}()
	return run
}
