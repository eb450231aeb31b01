package turn

import (
	"context"
	"sync"
)

// router passes each line of a program to the running turn, or between turns to the callback idle.
type router struct {
	queue *Queue[queued] // lines for the turn
	idle  func(line []byte)

	mu      sync.Mutex // held while the callback idle runs, and while a turn starts or ends
	to      recipient
	handled int64         // offset after the last handled line
	past    bool          // the current output is from before ductor attached
	caught  chan struct{} // closed when all output from before ductor attached is handled
}

// recipient determines where the router passes lines.
type recipient string

const (
	firstTurn   recipient = "the first turn" // the queue stores the program's lines until the first turn begins
	runningTurn recipient = "the turn"
	noTurn      recipient = "no turn"
)

// queued is a line in the queue of a turn, or a Change of the output.
type queued struct {
	line  []byte
	waste bool  // the line was too long, so that only its beginning is stored
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

// deliver passes q to the callback idle or to the turn. It blocks while the turn's queue is full.
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

func (r *router) passIdle(q queued) {
	r.markHandled(q)
	if !q.waste && !q.Any() && r.idle != nil {
		r.idle(q.line)
	}
}

// markHandled records that q was handled. The caller holds mu.
func (r *router) markHandled(q queued) {
	if q.CaughtUp {
		r.past = false
		close(r.caught)
		return
	}
	r.handled = q.end
}

// handledByTurn is markHandled for callers that do not hold mu.
func (r *router) handledByTurn(q queued) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.markHandled(q)
}

// begin passes all later lines to the turn. It reports whether the next lines are from before ductor attached.
func (r *router) begin() (past bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = runningTurn
	return r.past
}

// finish ends the turn. It first calls recordEnd with the offset after the last line that the turn has handled. It then
// passes the lines in rest and the lines in the queue to the callback idle. From then on, the router passes all lines
// to idle.
func (r *router) finish(rest []queued, recordEnd func(offset int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recordEnd(r.handled)
	r.to = noTurn
	waiting, _ := r.queue.Take()
	for _, q := range append(rest, waiting...) {
		r.passIdle(q)
	}
}

func (r *router) offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handled
}

// awaitPast waits until the callback idle has handled the output that was printed before ductor attached. Without this
// wait, a new turn would treat that output as its own. awaitPast does not wait if the turn is resumed, because a
// resumed turn handles that output itself. It returns early if the output has ended.
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
