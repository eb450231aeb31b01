package service

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"ductor/cli"
	"ductor/internal/growstack"
)

// core contains what all parts of a Service share.
type core struct {
	opts Options
	base context.Context // cancelled by Close
	work *group
}

// group counts running work, so that Close can wait for it. Unlike a sync.WaitGroup, a group can be closed, and
// wait ends early if its context ends. After close, enter and spawn accept no work. Go and Add do not check whether the
// group is closed, so only work that is already running may then call them.
type group struct {
	sync.WaitGroup

	mu     sync.Mutex
	closed bool
	idle   chan struct{} // closed when the group is closed and no work is running
}

func newGroup() *group { return &group{idle: make(chan struct{})} }

// enter registers work. The caller must call Done when the work has ended. enter returns false if the group is closed.
func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.Add(1)
	}
	return !g.closed
}

func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	go func() { // this goroutine ends when no work is running
		g.WaitGroup.Wait()
		close(g.idle)
	}()
}

// spawn runs f on a goroutine. It returns false if the group is closed.
func (g *group) spawn(f func()) bool {
	if !g.enter() {
		return false
	}
	go func() {
		defer g.Done()
		f()
	}()
	return true
}

// wait waits until a closed group has no more work. If ctx ends first, it returns the cause of ctx.
func (g *group) wait(ctx context.Context) error {
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func beside[T any](g *group, f func() T) <-chan T {
	came := make(chan T, 1)
	g.Go(func() {
		growstack.Grow()
		came <- f()
	})
	return came
}

// guard runs f, which calls a provider. It converts a panic to a Failure.
func guard(agent cli.Agent, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &cli.Failure{
				Kind: cli.UnknownFailure, Agent: agent, Reason: "ductor has a defect in its part for this agent",
				Detail: cli.Shorten(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()), 4<<10),
			}
		}
	}()
	return f()
}
