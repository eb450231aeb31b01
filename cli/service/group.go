package service

import (
	"context"
	"sync"
)

// group counts work that its owner waits for. Unlike a sync.WaitGroup it can be closed against new work,
// and waiting for it has an end.
type group struct {
	mu     sync.Mutex
	count  int
	closed bool
	idle   chan struct{} // closed when closed and count is 0
}

func newGroup() *group { return &group{idle: make(chan struct{})} }

// enter begins a piece of work; false if the group is closed.
func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.count++
	return true
}

// more begins a piece of work on behalf of one that has not left yet, or of the owner before it waits:
// that is allowed also when the group is closed.
func (g *group) more() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
}

func (g *group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	g.settle()
}

func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.settle()
}

// settle is called with mu held.
func (g *group) settle() {
	if !g.closed || g.count > 0 {
		return
	}
	select {
	case <-g.idle:
	default:
		close(g.idle)
	}
}

// spawn runs f on a goroutine; false if the group is closed.
func (g *group) spawn(f func()) bool {
	if !g.enter() {
		return false
	}
	go func() {
		defer g.leave()
		f()
	}()
	return true
}

// wait returns when the closed group has no work, or with ctx's cause.
func (g *group) wait(ctx context.Context) error {
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
