package turn

import (
	"context"
	"sync"
)

// router passes the lines of a program to the running turn. Between turns it passes them to idle.
type router struct {
	queue *Queue[queued] // to the turn
	idle  func(line []byte)

	mu      sync.Mutex // held while idle is called, and to start or end a turn
	to      recipient
	handled int64         // the offset after the last line that idle or a turn has handled
	past    bool          // true while handling output from before ductor attached
	caught  chan struct{} // closed when that is over
}

// recipient determines who receives lines.
type recipient string

const (
	firstTurn   recipient = "the first turn" // which has not started yet
	runningTurn recipient = "the turn"
	noTurn      recipient = "no turn"
)

// queued is one line that waits to be handled, or a change of the output between two lines.
type queued struct {
	line  []byte
	waste bool  // too long: only its beginning was kept
	end   int64 // the offset after it
	Change
}

func newRouter(o StreamOptions) *router {
	r := &router{queue: NewQueue[queued](queuedLines), idle: o.Idle, to: firstTurn, caught: make(chan struct{})}
	if o.Idle != nil && !o.Held {
		r.to = noTurn
	}
	if o.Past != nil {
		r.handled, r.past = o.Past.From, true
	} else {
		close(r.caught)
	}
	return r
}

// deliver passes q to idle or to the turn. It blocks while the turn's queue is full.
func (r *router) deliver(q queued) {
	r.queue.AwaitRoom()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == noTurn {
		r.passIdle(q)
		return
	}
	r.queue.Put(q, len(q.line))
}

// passIdle passes a line to idle. mu is held.
func (r *router) passIdle(q queued) {
	r.note(q)
	if !q.waste && !q.Any() && r.idle != nil {
		r.idle(q.line)
	}
}

// note records up to which offset the output was handled. mu is held.
func (r *router) note(q queued) {
	if q.CaughtUp {
		r.past = false
		close(r.caught)
		return
	}
	r.handled = q.end
}

// taken records that the turn handles q.
func (r *router) taken(q queued) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(q)
}

// begin directs all later lines to the turn. It reports whether these lines are from before ductor attached.
func (r *router) begin() (past bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = runningTurn
	return r.past
}

// finish passes the turn's remaining lines, and all later lines, to idle. Before that it calls ended with the offset
// after the lines of the turn.
func (r *router) finish(rest []queued, ended func(offset int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended(r.handled)
	r.to = noTurn
	waiting, _ := r.queue.Take()
	for _, q := range append(rest, waiting...) {
		r.passIdle(q)
	}
}

// offset returns the offset after the last handled line. It is 0 before the first output.
func (r *router) offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handled
}

// awaitPast waits until the output from before ductor attached is handled. Otherwise a new turn would take that output
// for its own. If a turn is meant to handle that output, awaitPast returns at once. ended is closed when no output
// follows.
func (r *router) awaitPast(ctx context.Context, ended <-chan struct{}) {
	r.mu.Lock()
	idle := r.to == noTurn
	r.mu.Unlock()
	if !idle {
		return
	}
	select {
	case <-r.caught:
	case <-ended:
	case <-ctx.Done():
	}
}
