package proctree

import (
	"context"
	"sync"
	"time"
)

// longestGrace is the grace period that Terminator.End passes to Tree.End. Terminator.End enforces the shorter grace
// periods of its callers: it cancels the context of Tree.End when the first of them is over.
const longestGrace = 24 * time.Hour

// Terminator ends the processes of a tree. Its field Tree is a function that returns the tree. Safe for concurrent use.
type Terminator struct {
	Tree func() *Tree

	mu  sync.Mutex
	run *termination
}

type termination struct {
	hurry context.CancelFunc // ends the grace period
	done  chan struct{}
	err   error // valid once done is closed
}

// End ends all processes of the tree, and returns when no process is left. Concurrent calls share one call of Tree.End.
// The shortest of their grace periods applies.
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
	go func() {
		run.err = t.Tree().End(ctx, longestGrace)
		hurry()
		t.mu.Lock()
		t.run = nil
		t.mu.Unlock()
		close(run.done)
	}()
	return run
}
