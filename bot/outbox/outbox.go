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

// Settings configures limits for the calls to Telegram. If a limit is 0, the Outbox uses only the limit that it
// learns from Telegram.
type Settings struct {
	PrivatePerSecond float64 `toml:"private_per_second" check:"0|0.01..100"`
	PrivateBurst     int     `toml:"private_burst" check:"0..100"`
	GroupPerMinute   float64 `toml:"group_per_minute" check:"0|0.01..6000"`
	OverallPerSecond float64 `toml:"overall_per_second" check:"0|0.01..1000"`
}

// Options returns the options with the configured limits.
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

// interval returns the time between two calls at a rate of count per unit, or 0 if count is 0.
func interval(unit time.Duration, count float64) time.Duration {
	if count == 0 {
		return 0
	}
	return time.Duration(float64(unit) / count)
}

// Options configures an Outbox. Zero values mean the defaults.
type Options struct {
	Private Rate                   // limit of a private chat: 20 at once, 1 a second
	Group   Rate                   // limit of a group with all its topics: 10 at once, 20 a minute
	Overall Rate                   // limit of the bot: 30 at once, 30 a second
	Store   orchestrator.RateStore // nil: do not store budgets
	// Trouble classifies the error of a call. nil treats every error as Settled.
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

// Outbox makes all calls for chats, and owns their budgets. Each chat with waiting calls has its own goroutine, so
// chats do not delay each other. The calls of one chat are sequential. Safe for concurrent use.
type Outbox struct {
	opts Options
	life context.Context // its end cancels calls in flight
	kill context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	queues map[int64]*queue
	pace   *pace // budget of the bot
	usage  usage // recent calls of the bot
	closed bool
}

// New returns an Outbox. The caller must call Drain at the end.
func New(o Options) *Outbox {
	o = o.withDefaults()
	life, kill := context.WithCancel(context.Background())
	return &Outbox{
		opts: o, life: life, kill: kill, queues: make(map[int64]*queue), pace: newPace(o.Overall, botDebt, time.Now()),
	}
}

// Restore loads the budgets from the Store. Call it before the first call.
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

// Slowdown is the current effect of Telegram's rate limits on a chat. The zero value means none.
type Slowdown struct {
	Silence time.Duration // time until the next call
	Every   time.Duration // average time between two calls if it is longer than usual, or 0
}

// Slowed returns how Telegram's rate limits affect a chat: limits of the chat, or of the whole bot.
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

// Do makes a call and waits for its result. It returns the last error of Run, an error of this package, or the error
// of ctx if ctx ended before the call was made. Do always waits for a call in flight.
func (o *Outbox) Do(ctx context.Context, c Call) error {
	if c.Chat == (Chat{}) {
		return o.direct(ctx, c)
	}
	done := make(chan error, 1)
	o.Go(ctx, c, func(err error) { done <- err })
	return <-done
}

// Go makes a call that concerns a chat, and returns immediately. If done is not nil, Go calls it exactly once with
// the result that Do would return. done must not block, and may be called before Go returns.
func (o *Outbox) Go(ctx context.Context, c Call, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	o.post(&entry{call: c, ctx: ctx, done: done})
}

// post adds a call to the queue of its chat.
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
	// Yield, because the caller may compute for long. If no processor is idle, the call and its user would wait for
	// that.
	runtime.Gosched()
}

// withdraw ends a call whose caller gave up. It does nothing if the call is in flight or has ended.
func (o *Outbox) withdraw(e *entry) {
	o.mu.Lock()
	removed := e.queue.remove(e)
	o.mu.Unlock()
	if removed {
		e.queue.signal()
		end([]*entry{e}, context.Cause(e.ctx))
	}
}

// Retract withdraws a waiting Newest call, which ends with ErrReplaced. A call in flight continues.
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

// Attend runs f on a goroutine that Drain waits for. f may make calls. If the outbox is closed, Attend returns false
// and does not run f.
func (o *Outbox) Attend(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.wg.Go(f)
	return true
}

// Drain ends the outbox. It drops Newest and Optional calls. It makes Ensured calls without their Delay until ctx is
// done. The remaining calls end with ErrClosed. Drain returns when no call is running.
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
