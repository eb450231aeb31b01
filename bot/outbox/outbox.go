package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"ductor/orchestrator"
)

// Settings contains rate limits from the configuration. If a limit is 0, a default applies. When Telegram responds with
// rate limit errors, the outbox reduces the limits, including the defaults.
type Settings struct {
	PrivatePerSecond float64 `toml:"private_per_second" check:"0|0.01..100"`
	PrivateBurst     int     `toml:"private_burst" check:"0..100"`
	GroupPerMinute   float64 `toml:"group_per_minute" check:"0|0.01..6000"`
	OverallPerSecond float64 `toml:"overall_per_second" check:"0|0.01..1000"`
}

// Options returns Options with these rate limits.
func (s Settings) Options() (o Options) {
	o.Private = Rate{Every: interval(time.Second, s.PrivatePerSecond), Burst: s.PrivateBurst}
	o.Group = Rate{Every: interval(time.Minute, s.GroupPerMinute)}
	o.Overall = Rate{Every: interval(time.Second, s.OverallPerSecond)}
	if s.GroupPerMinute > 0 {
		o.Group.Burst = max(int(s.GroupPerMinute/2), 1)
	}
	if s.OverallPerSecond > 0 {
		o.Overall.Burst = max(int(s.OverallPerSecond), 1)
	}
	return o
}

// interval converts a rate, as the number of requests in a unit of time, to the time between two requests. It returns 0
// for a rate of 0.
func interval(unit time.Duration, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(unit) / rate)
}

// Options configures an Outbox. Zero values mean defaults.
type Options struct {
	Private Rate                   // limit of a private chat; default: 20 at once, 1 a second
	Group   Rate                   // limit of a group with all its topics; default: 10 at once, 20 a minute
	Overall Rate                   // limit of the bot in all chats; default: 30 at once, 30 a second
	Store   orchestrator.RateStore // stores budgets, so that they survive restarts; may be nil
	// Trouble returns the reaction to the error of a call. If Trouble is nil, no call is retried.
	Trouble func(error) Trouble
	Log     *slog.Logger
	Jitter  func() float64 // returns a random number in [0, 1); may be nil
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

// Outbox makes the requests to Telegram and observes the rate limits. The calls for one chat run one after the other,
// in a goroutine that exists only while calls are waiting. Different chats do not delay each other. An Outbox is safe
// for concurrent use.
type Outbox struct {
	opts Options
	life context.Context // cancelled to end all running calls
	kill context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	queues map[int64]*queue
	pace   *pace // budget of the bot in all chats
	usage  usage // recent requests of the bot in all chats
	closed bool
}

// New returns an Outbox. The caller must call Drain when the Outbox is no longer needed.
func New(o Options) *Outbox {
	o = o.withDefaults()
	life, kill := context.WithCancel(context.Background())
	return &Outbox{
		opts: o, life: life, kill: kill, queues: make(map[int64]*queue), pace: newPace(o.Overall, botDebt, time.Now()),
	}
}

// Restore loads the budgets from the Store. The caller must call Restore before Do and Go.
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

// Slowdown describes how Telegram's rate limits currently slow down a chat. The zero value means that the chat is not
// slowed down.
type Slowdown struct {
	Silence time.Duration // time until the next request is allowed
	Every   time.Duration // time between two requests, if longer than usual; otherwise 0
}

// Slowed returns how Telegram's rate limits slow down a chat. It considers the limit of the chat and the limit of the
// bot.
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

// Do makes a call and waits until the call has ended. It returns the error that c.Run returned last, or one of the
// errors of this package. If ctx is done before the call starts, Do returns the error of ctx.
func (o *Outbox) Do(ctx context.Context, c Call) error {
	if c.Chat == (Chat{}) {
		return o.direct(ctx, c)
	}
	done := make(chan error, 1)
	o.Go(ctx, c, func(err error) { done <- err })
	return <-done
}

// Go makes a call for a chat in the background. If done is not nil, it is called exactly once, with the error that Do
// would return. done must not block. It may be called before Go returns.
func (o *Outbox) Go(ctx context.Context, c Call, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	o.post(&entry{call: c, ctx: ctx, done: done})
}

func (o *Outbox) post(e *entry) {
	now := time.Now()
	o.mu.Lock()
	if o.life.Err() != nil || o.closed && e.call.Delivery != Ensured {
		o.mu.Unlock()
		end([]*entry{e}, ErrClosed)
		return
	}
	q := o.queueOf(e.call.Chat, now)
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
	// Let the goroutine of the queue start now, because the caller may keep the processor busy for a long time.
	runtime.Gosched()
}

func (o *Outbox) withdraw(e *entry) {
	o.mu.Lock()
	removed := e.queue.remove(e)
	o.mu.Unlock()
	if removed {
		e.queue.signal()
		end([]*entry{e}, context.Cause(e.ctx))
	}
}

// Retract removes the waiting call with the given key and the Delivery Newest. This call ends with ErrReplaced. A
// running call continues.
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

// Attend runs f in a new goroutine. Drain waits until f returns. f may make calls. If Drain was already called, Attend
// returns false and does not run f.
func (o *Outbox) Attend(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.wg.Go(f)
	return true
}

// Drain stops the outbox. It drops Newest and Optional calls, and makes the waiting Ensured calls without their delays.
// When ctx is done, the remaining calls end with ErrClosed. Drain returns when no call is running.
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
