package bot

import (
	"context"
	"slices"
	"time"
)

// What a content task does with its lane: wait for the network without being in the way of commands, take
// in the parts that belong to it, and pass the point from which an abort no longer drops it.

// goSlow lets commands overtake t while it waits for the network. False means that t was dropped.
func (l *lane) goSlow(t *task) bool { return l.pace(t, slowly) }

// commit ends goSlow: from here on t runs to its end. False means that t was dropped.
func (l *lane) commit(t *task) bool { return l.pace(t, promptly) }

type pace bool

const (
	slowly   pace = true
	promptly pace = false
)

func (l *lane) pace(t *task, p pace) bool {
	k := l.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.dropped || k.closed && p == slowly {
		return false
	}
	l.slow = bool(p)
	l.touch()
	return true
}

// absorb waits until the next content of the lane is there and takes it into t if fits says so. It gives
// nil when window passed, when the next content does not fit, when a command came, or when ctx ended. The
// caller is slow.
func (l *lane) absorb(ctx context.Context, t *task, window time.Duration, fits func(*incoming) bool) *task {
	k := l.keeper
	timer := time.NewTimer(window)
	defer timer.Stop()
	for {
		k.mu.Lock()
		next, settled := l.nextPart(t, fits)
		changed := l.changed
		k.mu.Unlock()
		if settled {
			return next
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// nextPart is the content that follows t, taken off the queue if it belongs to t. settled is false while
// it cannot be told yet. The lock is held.
func (l *lane) nextPart(t *task, fits func(*incoming) bool) (next *task, settled bool) {
	if t.dropped || l.keeper.closed {
		return nil, true
	}
	if l.arrived(laneUrgent, t.seq, newest) {
		return nil, false // an abort: whether it drops t shows in a moment
	}
	queue := l.waiting[laneContent]
	if len(queue) == 0 {
		return nil, l.arrived(laneControl, t.seq, newest)
	}
	head := queue[0]
	if l.arrived(laneControl, t.seq, head.seq) || !fits(head.content) {
		return nil, true
	}
	l.waiting[laneContent] = slices.Delete(queue, 0, 1)
	t.updates = append(t.updates, head.updates...)
	return head, true
}

// newest is above every place in the order of arrival.
const newest = ^uint64(0)

// arrived says whether a task of class c came after from and before to, and is not done.
func (l *lane) arrived(c laneClass, from, to uint64) bool {
	between := func(t *task) bool { return t.seq > from && t.seq < to }
	return l.active[c] != nil && between(l.active[c]) || slices.ContainsFunc(l.waiting[c], between)
}

// dropContent takes every content of whom it concerns that came before abort out of the lane and returns their updates and
// how many prompts they were. Content that is past its commit is waited for: the domain has it then, or will not get it.
func (l *lane) dropContent(ctx context.Context, abort *task, concerns func(*incoming) bool) (updates []int64, prompts int) {
	k := l.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	l.waiting[laneContent] = slices.DeleteFunc(l.waiting[laneContent], func(t *task) bool {
		if t.seq > abort.seq || !concerns(t.content) {
			return false
		}
		updates = append(updates, t.updates...)
		prompts++
		return true
	})
	for a := l.active[laneContent]; a != nil && a.seq < abort.seq && concerns(a.content); a = l.active[laneContent] {
		if l.slow && !a.dropped {
			a.dropped = true
			a.stop()
			updates = append(updates, a.updates...)
			prompts++
			l.touch()
			return updates, prompts
		}
		if a.dropped {
			return updates, prompts
		}
		changed := l.changed
		k.mu.Unlock()
		select {
		case <-changed:
			k.mu.Lock()
		case <-ctx.Done():
			k.mu.Lock()
			return updates, prompts
		}
	}
	return updates, prompts
}

// abort is a message that stops what runs in its conversation.
type abort struct {
	in    *incoming
	queue *lane
	task  *task
}

// drop takes the prompts of whom it concerns out of the queue that came before the abort, and returns their updates and
// how many they were.
func (a abort) drop(ctx context.Context, concerns func(*incoming) bool) (updates []int64, prompts int) {
	return a.queue.dropContent(ctx, a.task, concerns)
}

// beside runs f on a goroutine of its own; its ctx ends when ductor does.
func (a abort) beside(f func(ctx context.Context)) { a.queue.keeper.beside(f) }
