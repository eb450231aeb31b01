package bot

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// verdict is what to do after a try.
type verdict int

const (
	decided verdict = iota
	afterFreeze
	afterBackoff
)

// judge says what an error means for a call of a class.
func judge(c Call, err error) verdict {
	must := c.Class == MustDeliver || c.Class == Direct
	if must && errors.Is(err, errInAnotherForm) {
		return afterFreeze
	}
	switch FaultOf(err).Kind {
	case RateLimited:
		if must || c.Class == Coalesce {
			return afterFreeze
		}
	case ServerFault, NotSent:
		if must {
			return afterBackoff
		}
	case UnknownFault:
		if must && c.Idempotent {
			return afterBackoff
		}
	}
	return decided
}

// Backoff after trouble that is not a rate limit.
const (
	firstBackoff = 500 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

// backoff doubles from try to try, and is spread so that chats do not come back all at once.
func (o *Outbox) backoff(tries int) time.Duration {
	d := firstBackoff << min(tries, 10)
	return time.Duration(float64(min(d, lastBackoff)) * (0.75 + o.opts.Jitter()/4))
}

// make makes one try of j and settles what becomes of it.
func (l *outLane) make(j *job) {
	o := l.out
	err := o.try(j.ctx, j.Call)
	now := time.Now()
	v := judge(j.Call, err)
	if v == afterFreeze || FaultOf(err).Kind == RateLimited {
		o.limited(l, FaultOf(err).RetryAfter, now)
	}
	o.mu.Lock()
	l.flying = nil
	switch {
	case v != decided && o.life.Err() != nil:
		v, err = decided, ErrClosed
	case v != decided && o.closed && j.Class == Coalesce: // as those that waited when Drain came
		v, err = decided, ErrClosed
	case v != decided && j.ctx.Err() != nil:
		v, err = decided, context.Cause(j.ctx)
	case v == afterBackoff:
		j.notBefore = now.Add(o.backoff(j.tries))
		j.tries++
	}
	if v != decided && !l.putBack(j) {
		v, err = decided, ErrReplaced
	}
	o.mu.Unlock()
	if v == decided {
		end([]*job{j}, err)
		return
	}
	o.opts.Log.Debug("call waits", "chat", j.Chat.ID, "err", err)
}

// limited silences a chat, or the whole bot when the limit is the bot's.
func (o *Outbox) limited(l *outLane, after time.Duration, now time.Time) {
	after += time.Duration(o.opts.Jitter() * float64(100*time.Millisecond))
	o.overall.limited(now, after, l != nil)
	if l == nil {
		return
	}
	o.mu.Lock()
	if until := now.Add(after); until.After(l.frozen) {
		l.frozen = until
	}
	o.mu.Unlock()
	o.opts.Log.Warn("Telegram's rate limit reached", "retry_after", after)
}

// try runs a call once; it ends with the outbox. A panic becomes an error: one message that cannot be
// built must not end the bot.
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

var errPanic = errors.New("outbox: the call panicked")

// errInAnotherForm is what Run gives when Telegram refused the call and the next try makes it otherwise. It keeps its
// place before the others of its key.
var errInAnotherForm = errors.New("outbox: the call is to be made in another form")

// direct makes a call that concerns no chat, on the caller's goroutine.
func (o *Outbox) direct(ctx context.Context, c Call) error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return ErrClosed
	}
	o.wg.Add(1)
	o.mu.Unlock()
	defer o.wg.Done()
	for tries := 0; ; tries++ {
		for {
			wait := o.overall.take(time.Now(), c.Class)
			if wait == 0 {
				break
			}
			if err := o.sleep(ctx, wait); err != nil {
				return err
			}
		}
		err := o.try(ctx, c)
		switch judge(c, err) {
		case decided:
			return err
		case afterFreeze:
			o.limited(nil, FaultOf(err).RetryAfter, time.Now())
		case afterBackoff:
			if err := o.sleep(ctx, o.backoff(tries)); err != nil {
				return err
			}
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
