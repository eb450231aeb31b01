package outbox

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Maximum numbers of waiting calls in a chat, and of chats whose budgets are in memory.
const (
	maxEnsured  = 512
	maxNewest   = 64
	maxOptional = 4
	maxQueues   = 1024
)

type entry struct {
	call      Call
	ctx       context.Context
	done      func(error)
	unwatch   func() bool
	queue     *queue
	tries     int
	posted    time.Time
	notBefore time.Time // end of the call's delay, or of the pause before a retry
}

// end ends calls and notifies their callers. The caller of end must not hold o.mu.
func end(entries []*entry, err error) {
	for _, e := range entries {
		if e.unwatch != nil {
			e.unwatch()
		}
		e.done(err)
	}
}

// queue contains the waiting calls of a chat. Outbox.mu guards it.
type queue struct {
	out      *Outbox
	chat     Chat
	pace     *pace
	edit     time.Time       // earliest time of the next Streaming call
	waiting  []*entry        // waiting calls in order of arrival
	flying   *entry          // running call; queue.waiting does not contain it
	parallel map[string]bool // keys of the running Parallel calls
	runs     bool
	wake     chan struct{} // capacity 1; signals that the queue changed
}

// queueOf returns the queue of a chat. The caller must hold o.mu.
func (o *Outbox) queueOf(chat Chat, now time.Time) *queue {
	if q := o.queues[chat.ID]; q != nil {
		return q
	}
	if len(o.queues) >= maxQueues {
		for id, q := range o.queues {
			if !q.runs && len(q.parallel) == 0 && q.pace.usual(now) {
				delete(o.queues, id)
			}
		}
	}
	normal := o.opts.Private
	if chat.Group {
		normal = o.opts.Group
	}
	q := &queue{
		out: o, chat: chat, parallel: map[string]bool{}, pace: newPace(normal, chatDebt, now),
		wake: make(chan struct{}, 1),
	}
	o.queues[chat.ID] = q
	return q
}

// wakeLocked starts the goroutine of the queue, if calls are waiting and the goroutine is not running.
func (q *queue) wakeLocked() {
	if !q.runs && len(q.waiting) > 0 {
		q.runs = true
		q.out.wg.Add(1)
		go q.run()
	}
}

func (q *queue) landLocked(e *entry) {
	if e.call.Parallel {
		delete(q.parallel, e.call.Key)
		return
	}
	q.flying = nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) count(d Delivery) (n int) {
	for _, e := range q.waiting {
		if e.call.Delivery == d {
			n++
		}
	}
	return n
}

// put adds the call e to the queue. If e is rejected or replaces another call, put returns the rejected or replaced
// call with its error.
func (q *queue) put(e *entry, now time.Time) (ended *entry, err error) {
	switch e.call.Delivery {
	case Newest:
		if i := q.newest(e.call.Key); i >= 0 {
			old := q.waiting[i]
			q.waiting[i] = e
			return old, ErrReplaced
		}
		if q.count(Newest) >= maxNewest {
			return e, ErrFull
		}
	case Optional:
		optional := q.count(Optional)
		busy := len(q.waiting) > optional || q.flying != nil && q.flying.call.Delivery != Optional
		if optional >= maxOptional || e.call.Delay == 0 && (busy || q.pace.wait(now, e.call.Priority, 0) > 0) {
			return e, ErrDropped
		}
	default:
		if q.count(Ensured) >= maxEnsured {
			return e, ErrFull
		}
	}
	if e.call.Delay > 0 && !q.out.closed {
		e.notBefore = now.Add(e.call.Delay)
	}
	q.waiting = append(q.waiting, e)
	return nil, nil
}

// newest returns the index of the waiting Newest call with the given key, or -1.
func (q *queue) newest(key string) int {
	return slices.IndexFunc(q.waiting, func(e *entry) bool { return e.call.Delivery == Newest && e.call.Key == key })
}

// putBack adds a call for a retry at the front of the queue. It returns false if a newer call has replaced the call.
func (q *queue) putBack(e *entry) bool {
	if e.call.Delivery == Newest && q.newest(e.call.Key) >= 0 {
		return false
	}
	q.waiting = slices.Insert(q.waiting, 0, e)
	return true
}

func (q *queue) remove(e *entry) bool {
	i := slices.Index(q.waiting, e)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// drop removes the waiting calls with one of the given Delivery values from the queue, and returns them.
func (q *queue) drop(deliveries ...Delivery) (dropped []*entry) {
	q.waiting = slices.DeleteFunc(q.waiting, func(e *entry) bool {
		drop := slices.Contains(deliveries, e.call.Delivery)
		if drop {
			dropped = append(dropped, e)
		}
		return drop
	})
	return dropped
}

// endDelays ends the pauses that Call.Delay causes, but no pauses before retries.
func (q *queue) endDelays() {
	for _, e := range q.waiting {
		if e.call.Delay > 0 && e.tries == 0 {
			e.notBefore = time.Time{}
		}
	}
}

// heads returns the first call of each priority that may run now, or nil if there is none. Among Ensured calls with the
// same key, only the first may run. heads also returns the time until the next pause of a call ends, or 0 if no call is
// pausing.
func (q *queue) heads(now time.Time) (first [Indicator - Urgent + 1]*entry, wait time.Duration) {
	held := maps.Clone(q.parallel)
	for _, e := range q.waiting {
		if e.call.Delivery == Ensured {
			if held[e.call.Key] {
				continue
			}
			held[e.call.Key] = true
		}
		if d := e.notBefore.Sub(now); d > 0 {
			wait = sooner(wait, d)
			continue
		}
		if at := e.call.Priority - Urgent; first[at] == nil {
			first[at] = e
		}
	}
	return first, wait
}

// sooner returns the shorter of two durations. It ignores a duration of 0.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// next removes the call that must be made now from the queue, spends its tokens, and returns it. If no call may be made
// yet, next returns the time until one may be made, or 0 if no call is waiting.
//
// In two cases, next also removes all Optional calls from the queue and returns them in dropped: if next returns a call
// of another Delivery, and if the budget does not allow an Optional call now.
func (q *queue) next(now time.Time) (next *entry, wait time.Duration, dropped []*entry) {
	first, wait := q.heads(now)
	for _, e := range first {
		if e == nil {
			continue
		}
		lack := q.budget(now, e)
		switch {
		case lack == 0:
			q.spendTokens(now, e.call.Priority)
			q.remove(e)
			if e.call.Delivery != Optional {
				dropped = append(dropped, q.drop(Optional)...)
			}
			return e, 0, dropped
		case e.call.Delivery != Optional:
			wait = sooner(wait, lack)
			continue
		}
		dropped = append(dropped, q.drop(Optional)...)
	}
	return nil, wait, dropped
}

// budget returns how long a call must still wait because of the budgets of the chat and of the bot.
func (q *queue) budget(now time.Time, e *entry) time.Duration {
	waited := now.Sub(e.posted)
	wait := max(q.pace.wait(now, e.call.Priority, waited), q.out.pace.wait(now, e.call.Priority, waited))
	if e.call.Priority == Streaming {
		wait = max(wait, q.edit.Sub(now))
	}
	return wait
}

func (q *queue) spendTokens(now time.Time, priority Priority) {
	q.pace.spendToken(now)
	q.out.pace.spendToken(now)
	q.out.usage.add(now)
	if priority == Streaming {
		q.edit = now.Add(q.pace.betweenEdits(now))
	}
}
