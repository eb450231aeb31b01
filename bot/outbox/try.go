package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"ductor/internal/growstack"
	"ductor/orchestrator"
)

// run makes the calls in the queue until none is waiting.
func (q *queue) run() {
	o := q.out
	defer o.wg.Done()
	growstack.Grow()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		o.mu.Lock()
		e, wait, dropped := q.next(time.Now())
		q.flying, q.runs = e, e != nil || wait > 0
		if e != nil && e.call.Parallel {
			q.flying, q.parallel[e.call.Key] = nil, true
		}
		runs := q.runs
		o.mu.Unlock()
		end(dropped, ErrDropped)
		switch {
		case e != nil && e.call.Parallel:
			o.wg.Go(func() { q.makeParallel(e) })
			continue
		case e != nil:
			q.make(e)
			continue
		case !runs:
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-q.wake:
		case <-o.life.Done():
			q.giveUp()
			return
		}
	}
}

func (q *queue) giveUp() {
	q.out.mu.Lock()
	left := q.waiting
	q.waiting, q.runs = nil, false
	q.out.mu.Unlock()
	end(left, ErrClosed)
}

// Pauses before a retry, except after a rate limit.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// pause returns the pause before the next attempt. The pause doubles with each attempt. It has a random part, so that
// the chats do not all retry at the same time.
func (o *Outbox) pause(tries int) time.Duration {
	d := firstPause << min(tries, 10)
	return time.Duration(float64(min(d, lastPause)) * (0.75 + o.opts.Jitter()/4))
}

// makeParallel makes a Parallel call. When the call ends, it wakes the queue, because calls with the same key may be
// waiting.
func (q *queue) makeParallel(e *entry) {
	q.make(e)
	q.out.mu.Lock()
	q.wakeLocked()
	q.out.mu.Unlock()
	q.signal()
}

func (q *queue) make(e *entry) {
	o := q.out
	err := o.try(e.ctx, e.call)
	now := time.Now()
	if errors.Is(err, ErrNotNeeded) {
		o.settle(e, now)
		return
	}
	trouble := o.opts.Trouble(err)
	v := judge(e.call, err, trouble)
	learned := o.learn(q, trouble, now)
	o.mu.Lock()
	q.landLocked(e)
	switch {
	case v != decided && o.life.Err() != nil:
		v, err = decided, ErrClosed
	case v != decided && o.closed && e.call.Delivery == Newest: // Drain drops Newest calls, so do not retry this one
		v, err = decided, ErrClosed
	case v != decided && e.ctx.Err() != nil:
		v, err = decided, context.Cause(e.ctx)
	case v == afterPause:
		e.notBefore = now.Add(o.pause(e.tries))
		e.tries++
	}
	if v != decided && !q.putBack(e) {
		v, err = decided, ErrReplaced
	}
	o.mu.Unlock()
	if v == decided {
		end([]*entry{e}, err)
	} else {
		o.opts.Log.Debug("call waits", "chat", e.call.Chat.ID, "err", err)
	}
	o.save(learned)
}

// settle ends a call that returned ErrNotNeeded, and returns its tokens to the budgets.
func (o *Outbox) settle(e *entry, now time.Time) {
	o.mu.Lock()
	e.queue.landLocked(e)
	e.queue.pace.returnToken(now)
	o.pace.returnToken(now)
	o.mu.Unlock()
	end([]*entry{e}, nil)
}

// learn adapts the budgets to the outcome of a request, and returns the changed budgets. q is nil if the request has no
// chat.
func (o *Outbox) learn(q *queue, t Trouble, now time.Time) (learned []orchestrator.SendRate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changed := func(chat int64, p *pace) {
		learned = append(learned, p.learned(chat, now))
	}
	if t.Kind != Limited {
		if t.Kind == Settled && q != nil && q.pace.accepted(now) {
			changed(q.chat.ID, q.pace)
		}
		if t.Kind == Settled && o.pace.accepted(now) {
			changed(0, o.pace)
		}
		return learned
	}
	// The clock of Telegram may differ a little from that of this machine.
	after := t.After + time.Duration(o.opts.Jitter()*float64(100*time.Millisecond))
	if q != nil && !o.concernsBot(q, now) {
		q.pace.refused(now, after)
		changed(q.chat.ID, q.pace)
	} else {
		// Telegram does not report which limit was exceeded. It was probably the limit of the bot, so reduce the bot's
		// rate. But stop only this chat, because all others would wait in vain if the guess is wrong.
		o.pace.refused(now, 0)
		changed(0, o.pace)
		if q != nil {
			q.pace.silent = now.Add(after)
			changed(q.chat.ID, q.pace)
		}
	}
	o.opts.Log.Warn("Telegram's rate limit reached", "retry_after", after)
	return learned
}

// botBusy is the number of requests per second above which a rate limit error probably concerns the limit of the bot.
const botBusy = 10

// concernsBot reports whether a rate limit error probably concerns the limit of the bot. Otherwise, it concerns the
// limit of the chat. concernsBot returns true if the bot made many requests, but only few of them for this chat.
func (o *Outbox) concernsBot(q *queue, now time.Time) bool {
	return o.usage.at(now) >= botBusy && float64(q.pace.bucket.rate.Burst)-q.pace.bucket.have(now) < 2.5
}

// usage estimates how many requests were made in the last second.
type usage struct {
	count float64
	since time.Time
}

func (u *usage) at(now time.Time) float64 { return u.count * math.Exp(-now.Sub(u.since).Seconds()) }

func (u *usage) add(now time.Time) { u.count, u.since = u.at(now)+1, now }

// savePatience is the timeout for storing a rate. The next call waits until the rate is stored.
const savePatience = 5 * time.Second

func (o *Outbox) save(learned []orchestrator.SendRate) {
	if o.opts.Store == nil {
		return
	}
	for _, l := range learned {
		ctx, cancel := context.WithTimeout(context.Background(), savePatience)
		if err := o.opts.Store.SaveSendRate(ctx, l); err != nil {
			o.opts.Log.Warn("a learned rate is not saved", "chat", l.Chat, "err", err)
		}
		cancel()
	}
}

// try calls c.Run. It returns an error if Run panics, so that one faulty message does not crash ductor.
func (o *Outbox) try(ctx context.Context, c Call) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.life, cancel)()
	defer func() {
		if p := recover(); p != nil {
			o.opts.Log.Error("panic in an outgoing call", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return c.Run(ctx)
}

// direct makes a call without a chat, in the goroutine of the caller.
func (o *Outbox) direct(ctx context.Context, c Call) error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return ErrClosed
	}
	o.wg.Add(1)
	o.mu.Unlock()
	defer o.wg.Done()
	began := time.Now()
	for tries := 0; ; tries++ {
		if err := o.admit(ctx, c.Priority, began); err != nil {
			return err
		}
		err := o.try(ctx, c)
		trouble := o.opts.Trouble(err)
		o.save(o.learn(nil, trouble, time.Now()))
		wait := trouble.After
		switch judge(c, err, trouble) {
		case decided:
			return err
		case afterPause:
			wait = o.pause(tries)
		}
		if err := o.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// admit waits until the budget of the bot allows a request, and spends a token.
func (o *Outbox) admit(ctx context.Context, priority Priority, began time.Time) error {
	for {
		now := time.Now()
		o.mu.Lock()
		wait := o.pace.wait(now, priority, now.Sub(began))
		if wait == 0 {
			o.pace.spendToken(now)
			o.usage.add(now)
		}
		o.mu.Unlock()
		if wait == 0 {
			return nil
		}
		if err := o.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (o *Outbox) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-o.life.Done():
		return ErrClosed
	}
}
