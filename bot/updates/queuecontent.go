package updates

import (
	"context"
	"math"
	"slices"
	"time"
)

// A running content task calls gather or goSlow before it waits for more messages of the same prompt, for the disk or
// for the network. During the wait, an abort can drop the task. After the task has called commit, no abort can drop it.

// gather records that the task waits for more messages of the same prompt, or for the disk. It returns false if an
// abort dropped the task.
func (q *queue) gather(t *task) bool { return q.setPhase(t, gathering) }

// goSlow records that the task waits for the network, so that commands may run at the same time. It returns false if an
// abort dropped the task.
func (q *queue) goSlow(t *task) bool { return q.setPhase(t, fetching) }

// commit records that the task does not wait any more. It returns false if an abort already dropped the task.
// Otherwise, no abort can drop it from now on.
func (q *queue) commit(t *task) bool { return q.setPhase(t, uninterruptible) }

func (q *queue) setPhase(t *task, p phase) bool {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.dropped || k.closed() && p != uninterruptible {
		return false
	}
	q.phase = p
	q.touch()
	return true
}

// absorb waits for the next content task in the queue. If fits returns true for the message of this task, absorb
// removes the task from the queue, merges it into t and returns it. Otherwise absorb returns nil. It also returns nil
// if no task comes within window, if a command comes first, or if ctx is done. The caller must have called gather.
func (q *queue) absorb(ctx context.Context, t *task, window time.Duration, fits func(*Message) bool) *task {
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	for {
		if next, final := q.nextPart(t, fits); final || !q.await(ctx) {
			return next
		}
	}
}

// nextPart checks whether the next content task in the queue is a further part of the prompt of t. If it is, nextPart
// removes this task from the queue and returns it. final is false if a further part may still arrive. The caller must
// hold the lock.
func (q *queue) nextPart(t *task, fits func(*Message) bool) (next *task, final bool) {
	if t.dropped || q.all.closed() {
		return nil, true
	}
	if q.arrived(classUrgent, t.seq, newest) {
		return nil, false // wait, because an abort is waiting or running, and may drop t
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

// newest is greater than the position (task.seq) of any task.
const newest = math.MaxInt64

// arrived reports whether a task of class c between the positions from and to is waiting or running.
func (q *queue) arrived(c class, from, to int64) bool {
	between := func(t *task) bool { return t.seq > from && t.seq < to }
	return q.active[c] != nil && between(q.active[c]) || slices.ContainsFunc(q.waiting[c], between)
}

// dropContent removes the prompts that came before the abort and for which concerns returns true. It cannot remove the
// prompt of a task that has called commit. dropContent waits until such a task has ended, so that the caller can then
// stop the turn that the task started.
func (q *queue) dropContent(ctx context.Context, abort *task,
	concerns func(*Message) bool) (updates []int64, prompts int) {
	k := q.all
	k.mu.Lock()
	defer k.mu.Unlock()
	unwanted := func(t *task) bool {
		if t.seq > abort.seq || t.dropped || !concerns(t.content) {
			return false
		}
		updates = append(updates, t.updates...)
		prompts++
		return true
	}
	for {
		q.waiting[classContent] = slices.DeleteFunc(q.waiting[classContent], unwanted)
		a := q.active[classContent]
		switch {
		case a == nil || a.seq > abort.seq || a.dropped || !concerns(a.content):
			return updates, prompts
		case q.phase != uninterruptible && unwanted(a):
			a.dropped = true
			a.stop()
			q.touch()
			return updates, prompts
		case !q.await(ctx):
			return updates, prompts
		}
	}
}

// Abort is a request to stop everything that runs in a conversation.
type Abort struct {
	In    *Message
	queue *queue
	task  *task
}

// Drop removes prompts that were sent before the abort and have not become turns yet, if concerns returns true for
// them. It returns the number of removed prompts, and the IDs of their updates.
func (a Abort) Drop(ctx context.Context, concerns func(*Message) bool) (updates []int64, prompts int) {
	return a.queue.dropContent(ctx, a.task, concerns)
}

// Go runs f in a new goroutine. The context of f is cancelled when ductor stops.
func (a Abort) Go(f func(ctx context.Context)) { a.queue.all.spawn(f) }
