package updates

import (
	"context"
	"slices"
	"time"
)

// What a content task does with its queue: wait for the network without being in the way of commands, take
// in the parts that belong to it, and pass the point from which an abort no longer drops it.

// gather lets an abort drop t while it waits for further parts. It reports false if t was dropped.
func (q *queue) gather(t *task) bool { return q.setPace(t, gathering) }

// goSlow lets commands overtake t while it waits for the network. It reports false if t was dropped.
func (q *queue) goSlow(t *task) bool { return q.setPace(t, slowly) }

// commit ends gather and goSlow: from here on t runs to its end. It reports false if t was dropped.
func (q *queue) commit(t *task) bool { return q.setPace(t, promptly) }

func (q *queue) setPace(t *task, p pace) bool {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.dropped || k.closed() && p != promptly {
		return false
	}
	q.pace = p
	q.touch()
	return true
}

// absorb waits until the next content of the queue is there and takes it into t if fits says so. It gives
// nil when window passed, when the next content does not fit, when a command came, or when ctx ended. The
// caller gathers.
func (q *queue) absorb(ctx context.Context, t *task, window time.Duration, fits func(*Message) bool) *task {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	for {
		if next, known := q.nextPart(t, fits); known || !q.await(ctx) {
			return next
		}
	}
}

// nextPart is the content that follows t, taken off the queue if it belongs to t. known is false while
// more may arrive. The lock is held.
func (q *queue) nextPart(t *task, fits func(*Message) bool) (next *task, known bool) {
	if t.dropped || q.all.closed() {
		return nil, true
	}
	if q.arrived(classUrgent, t.seq, newest) {
		return nil, false // an abort: whether it drops t shows in a moment
	}
	waiting := q.waiting[classContent]
	if len(waiting) == 0 {
		return nil, q.arrived(classControl, t.seq, newest)
	}
	head := waiting[0]
	if q.arrived(classControl, t.seq, head.seq) || !fits(head.content) {
		return nil, true
	}
	q.waiting[classContent] = slices.Delete(waiting, 0, 1)
	t.updates = append(t.updates, head.updates...)
	return head, true
}

// newest is above every place in the order of arrival.
const newest = ^uint64(0)

// arrived says whether a task of class c came after from and before to, and is not done.
func (q *queue) arrived(c class, from, to uint64) bool {
	between := func(t *task) bool { return t.seq > from && t.seq < to }
	return q.active[c] != nil && between(q.active[c]) || slices.ContainsFunc(q.waiting[c], between)
}

// dropContent takes the content that concerns picks and that came before abort out of the queue. It waits for content past
// its commit: the domain has that then, or will not get it.
func (q *queue) dropContent(ctx context.Context, abort *task, concerns func(*Message) bool) (updates []int64, prompts int) {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	q.waiting[classContent] = slices.DeleteFunc(q.waiting[classContent], func(t *task) bool {
		if t.seq > abort.seq || !concerns(t.content) {
			return false
		}
		updates = append(updates, t.updates...)
		prompts++
		return true
	})
	for a := q.active[classContent]; a != nil && a.seq < abort.seq && concerns(a.content); a = q.active[classContent] {
		if q.pace != promptly && !a.dropped {
			a.dropped = true
			a.stop()
			updates = append(updates, a.updates...)
			prompts++
			q.touch()
			return updates, prompts
		}
		if a.dropped {
			return updates, prompts
		}
		if !q.await(ctx) {
			return updates, prompts
		}
	}
	return updates, prompts
}

// Abort is a message that stops what runs in its conversation.
type Abort struct {
	In    *Message
	queue *queue
	task  *task
}

// Drop takes the prompts that concerns picks and that came before the abort out of the queue. It returns their updates and
// how many prompts they were.
func (a Abort) Drop(ctx context.Context, concerns func(*Message) bool) (updates []int64, prompts int) {
	return a.queue.dropContent(ctx, a.task, concerns)
}

// Beside runs f on a goroutine of its own; its ctx ends when ductor does.
func (a Abort) Beside(f func(ctx context.Context)) { a.queue.all.beside(f) }
