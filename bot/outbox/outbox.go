package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"ductor/orchestrator"
)

// Options are the budgets and bounds of an Outbox; zero values mean the defaults.
type Options struct {
	Private Rate                   // of a private chat, at most: 20 at once, 1 a second
	Group   Rate                   // of a group with all its topics, at most: 10 at once, 20 a minute
	Overall Rate                   // of the bot, at most: 30 at once, 30 a second
	Store   orchestrator.RateStore // nil: what was learned is forgotten with the Outbox
	// Trouble says what the error of a call means. nil takes every error as Settled.
	Trouble func(error) Trouble
	Log     *slog.Logger
	Jitter  func() float64 // in [0, 1); nil means math/rand
}

func (o Options) withDefaults() Options {
	def := func(r *Rate, every time.Duration, burst int) {
		if r.Every == 0 {
			r.Every = every
		}
		if r.Burst == 0 {
			r.Burst = burst
		}
	}
	def(&o.Private, time.Second, 20)
	def(&o.Group, 3*time.Second, 10)
	def(&o.Overall, time.Second/30, 30)
	if o.Trouble == nil {
		o.Trouble = func(error) Trouble { return Trouble{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

// Outbox is the one way out: it owns the budgets. Each chat with calls that wait has a goroutine, which ends when none
// waits, so no chat delays another. The calls of one chat are made one at a time. Safe for concurrent use.
type Outbox struct {
	opts Options
	life context.Context // ends what is in flight
	kill context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	queues map[int64]*queue
	pace   *pace // of the bot
	usage  usage // by the bot
	closed bool
}

// New makes an Outbox. Call Drain to end it.
func New(o Options) *Outbox {
	o = o.withDefaults()
	life, kill := context.WithCancel(context.Background())
	return &Outbox{opts: o, life: life, kill: kill, queues: make(map[int64]*queue), pace: newPace(o.Overall, botDebt, time.Now())}
}

// Restore takes over what the Store has of the budgets. Call it before the first call.
func (o *Outbox) Restore(ctx context.Context) error {
	if o.opts.Store == nil {
		return nil
	}
	rates, err := o.opts.Store.SendRates(ctx)
	if err != nil {
		return fmt.Errorf("load the rates of chats: %w", err)
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range rates {
		if l.Chat == 0 {
			o.pace.resume(l, now)
			continue
		}
		o.queueOf(ChatOf(l.Chat), now).pace.resume(l, now)
	}
	return nil
}

// Slowdown is what Telegram's refusals mean for a chat now. The zero value means nothing.
type Slowdown struct {
	Silence time.Duration // until the next call
	Every   time.Duration // time between two calls in the long run, where that is more than usual
}

// Slowed says how Telegram's refusals slow a chat down, its own or those of the whole bot.
func (o *Outbox) Slowed(chat int64) (s Slowdown) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Silence = max(o.pace.silent.Sub(now), 0)
	if q := o.queues[chat]; q != nil {
		s.Silence = max(s.Silence, q.pace.silent.Sub(now))
		if q.pace.bucket.rate.Every > q.pace.normal.Every {
			s.Every = q.pace.bucket.rate.Every
		}
	}
	return s
}

// Do makes a call and waits until it is decided. The error is the last one of Run, one of the Err values of this
// package, or that of ctx when it ended before the call was made. A call in flight is waited for.
func (o *Outbox) Do(ctx context.Context, c Call) error {
	if c.Chat == (Chat{}) {
		return o.direct(ctx, c)
	}
	done := make(chan error, 1)
	o.Go(ctx, c, func(err error) { done <- err })
	return <-done
}

// Go makes a call that concerns a chat and returns at once. done, if not nil, is called exactly once with what Do would
// return; it must not block, and may be called before Go returns.
func (o *Outbox) Go(ctx context.Context, c Call, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	o.post(&entry{Call: c, ctx: ctx, done: done})
}

// post puts a call into the queue of its chat.
func (o *Outbox) post(e *entry) {
	now := time.Now()
	o.mu.Lock()
	if o.life.Err() != nil || o.closed && e.Delivery != Ensured {
		o.mu.Unlock()
		end([]*entry{e}, ErrClosed)
		return
	}
	q := o.queueOf(e.Chat, now)
	e.queue, e.posted = q, now
	if e.ctx.Done() != nil {
		e.unwatch = context.AfterFunc(e.ctx, func() { o.withdraw(e) })
	}
	ended, err := q.put(e, now)
	q.wakeLocked()
	o.mu.Unlock()
	q.signal()
	if ended != nil {
		end([]*entry{ended}, err)
	}
}

// withdraw ends a call whose caller gave up, unless it is in flight or decided.
func (o *Outbox) withdraw(e *entry) {
	o.mu.Lock()
	removed := e.queue.remove(e)
	o.mu.Unlock()
	if removed {
		e.queue.signal()
		end([]*entry{e}, context.Cause(e.ctx))
	}
}

// Retract takes back a Newest call that waits; it ends with ErrReplaced. One in flight is left alone.
func (o *Outbox) Retract(chat Chat, key string) {
	o.mu.Lock()
	var taken []*entry
	if q := o.queues[chat.ID]; q != nil {
		if i := q.newest(key); i >= 0 {
			taken = append(taken, q.waiting[i])
			q.remove(taken[0])
			q.signal()
		}
	}
	o.mu.Unlock()
	end(taken, ErrReplaced)
}

// Attend runs f, which makes calls, on a goroutine that Drain waits for. It is false, and f does not run, if the outbox
// is closed.
func (o *Outbox) Attend(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.wg.Go(f)
	return true
}

// Drain ends the outbox: calls that may be missed are dropped, Ensured calls are made until ctx ends, without their Delay, and
// what is left then ends with ErrClosed. It returns when nothing runs any more.
func (o *Outbox) Drain(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	var dropped []*entry
	for _, q := range o.queues {
		dropped = append(dropped, q.drop(Newest, Optional)...)
		q.endDelays()
		q.signal()
	}
	o.mu.Unlock()
	end(dropped, ErrClosed)

	idle := make(chan struct{})
	go func() {
		o.wg.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		o.kill()
		return nil
	case <-ctx.Done():
		o.kill()
		<-idle
		return context.Cause(ctx)
	}
}
