package proctree

import (
	"context"
	"sync"
	"time"
)

// longestGrace is longer than any grace. Each call of End sets its own grace.
const longestGrace = 24 * time.Hour

// Terminator ends the tree that Tree returns. Concurrent calls of End share one call of Tree.End. Safe for concurrent
// use.
type Terminator struct {
	Tree func() *Tree

	mu  sync.Mutex
	run *termination
}

type termination struct {
	hurry context.CancelFunc // ends the grace
	done  chan struct{}
	err   error // valid once done is closed
}

// End returns when no process is left. Concurrent calls share one termination, with the shortest grace of all calls.
func (t *Terminator) End(grace time.Duration) error {
	run := t.startOrJoin()
	if grace <= 0 {
		run.hurry()
	} else {
		timer := time.AfterFunc(grace, run.hurry)
		defer timer.Stop()
	}
	<-run.done
	return run.err
}

func (t *Terminator) startOrJoin() *termination {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil {
		return t.run
	}
	ctx, hurry := context.WithCancel(context.Background())
	run := &termination{hurry: hurry, done: make(chan struct{})}
	t.run = run
	go func() { // every call of End waits for it
		run.err = t.Tree().End(ctx, longestGrace)
		hurry()
		t.mu.Lock()
		t.run = nil
		t.mu.Unlock()
		close(run.done)
	}()
	return run
}
