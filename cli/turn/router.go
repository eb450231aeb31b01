package turn

import (
	"context"
	"sync"
)

// router passes the lines of a program to the running turn. Between turns it passes them to idle.
type router struct {
	queue *Queue[queued] // queue of the turn
	idle  func(line []byte)

	mu      sync.Mutex // held while idle runs, and to start or end a turn
	to      recipient
	handled int64         // offset after the last line that idle or a turn has handled
	past    bool          // whether the output is from before ductor attached
	caught  chan struct{} // closed when past becomes false
}

// recipient determines who receives lines.
type recipient string

const (
	firstTurn   recipient = "the first turn" // the first turn has not started yet
	runningTurn recipient = "the turn"
	noTurn      recipient = "no turn"
)

// queued is a line for a turn, or a change of the output between two lines.
type queued struct {
	line  []byte
	waste bool  // the line was too long, and only its beginning was kept
	end   int64 // offset after the line
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

// passIdle passes a line to idle. The caller holds mu.
func (r *router) passIdle(q queued) {
	r.note(q)
	if !q.waste && !q.Any() && r.idle != nil {
		r.idle(q.line)
	}
}

// note records the offset up to which the output was handled. The caller holds mu.
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

// begin directs all later lines to the turn. It reports whether the next lines are from before ductor attached.
func (r *router) begin() (past bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = runningTurn
	return r.past
}

// finish passes the turn's remaining lines, and all later lines, to idle. It first calls ended with the offset after
// the turn's lines.
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

// awaitPast waits until the output from before ductor attached was handled, because a new turn would mistake that
// output for its own. If a resumed turn handles the output, awaitPast returns at once. ended is closed when no more
// output will come.
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
