package updates

import (
	"context"
	"math"
	"slices"
	"time"
)

// A content task uses these methods of its queue while it waits for the network or for further parts. After commit,
// an abort no longer drops the task.

// gather records that t waits for further parts, so an abort may drop it. It returns false if t was dropped.
func (q *queue) gather(t *task) bool { return q.setPace(t, gathering) }

// goSlow records that t waits for the network, so commands may overtake it. It returns false if t was dropped.
func (q *queue) goSlow(t *task) bool { return q.setPace(t, slowly) }

// commit ends gather and goSlow: t now runs to its end. It returns false if t was dropped.
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

// absorb waits for the next content of the queue. If fits accepts it, absorb merges it into t and returns it. absorb
// returns nil if window has passed, the content does not fit, a command came, or ctx is done. The caller must have
// called gather.
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

// nextPart returns the content after t and removes it from the queue, if it belongs to t. known is false if such
// content may still arrive. The caller must hold the lock.
func (q *queue) nextPart(t *task, fits func(*Message) bool) (next *task, known bool) {
	if t.dropped || q.all.closed() {
		return nil, true
	}
	if q.arrived(classUrgent, t.seq, newest) {
		return nil, false // an abort waits, and may drop t
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

// newest is greater than any position in a queue.
const newest = math.MaxInt64

// arrived reports whether an unfinished task of class c has a position between from and to.
func (q *queue) arrived(c class, from, to int64) bool {
	between := func(t *task) bool { return t.seq > from && t.seq < to }
	return q.active[c] != nil && between(q.active[c]) || slices.ContainsFunc(q.waiting[c], between)
}

// dropContent removes the content that came before abort and for which concerns returns true. If such content is
// being committed, it waits: after that, either the domain has the prompt or the prompt failed.
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
		case q.pace != promptly && unwanted(a):
			a.dropped = true
			a.stop()
			q.touch()
			return updates, prompts
		case !q.await(ctx):
			return updates, prompts
		}
	}
}

// Abort is a message that stops the running work of its conversation.
type Abort struct {
	In         *Message
	queue      *queue
	task       *task
	unfinished *unfinished
}

// Drop removes the prompts that came before the abort and for which concerns returns true: from the queue, and from
// the prompts that could not be stored because the disk is full. It returns their updates and their number.
func (a Abort) Drop(ctx context.Context, concerns func(*Message) bool) (updates []int64, prompts int) {
	updates, prompts = a.queue.dropContent(ctx, a.task, concerns)
	left, more := a.unfinished.drop(func(m *Message) bool {
		return m.Conversation == a.In.Conversation && m.Update < a.In.Update && concerns(m)
	})
	return append(updates, left...), prompts + more
}

// Go runs f in a new goroutine. The ctx of f ends when ductor stops.
func (a Abort) Go(f func(ctx context.Context)) { a.queue.all.spawn(f) }
