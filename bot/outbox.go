package bot

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ChatRef names a chat and says which budget it has.
type ChatRef struct {
	ID    int64
	Group bool
}

// chatRef names a chat by its id. Telegram gives groups and channels ids below zero.
func chatRef(id int64) ChatRef { return ChatRef{ID: id, Group: id < 0} }

// Class says how a call is treated when there is no budget for it at once.
type Class int

// The classes. In one chat the calls of a class go before those of the classes after it.
const (
	// MustDeliver calls of one key go out in order, one after another, and are tried again until they are
	// decided: after a rate limit, while Telegram is in trouble or out of reach; and when the outcome is
	// unknown only if the call is idempotent.
	MustDeliver Class = iota
	// Coalesce calls wait for budget; of several with one key only the newest is made. Their content is
	// built by Run, at the moment there is budget. They are tried once, but survive rate limits.
	Coalesce
	// Shed calls are dropped when there is no budget right now or anything else waits in the chat.
	Shed
	// Direct calls concern no chat, so only the overall budget holds them. Tried like MustDeliver.
	Direct
)

// Call is one outgoing call.
type Call struct {
	Chat  ChatRef // not for Direct
	Class Class
	// Key orders MustDeliver calls: a call in trouble holds up those of its own key only. Of Coalesce
	// calls with one key the newest replaces the others.
	Key string
	// Idempotent calls may be made again when it is not known whether they happened.
	Idempotent bool
	// Run makes the call. It may be run several times, never twice at once, and must end with its ctx.
	Run func(ctx context.Context) error
}

// Errors that end a call without Run's verdict.
var (
	ErrShed     = errors.New("outbox: dropped, there was no budget")
	ErrReplaced = errors.New("outbox: replaced by a newer call")
	ErrFull     = errors.New("outbox: too many calls wait for this chat")
	ErrClosed   = errors.New("outbox: closed")
)

// Budget is a token bucket.
type Budget struct {
	Every time.Duration // time a call costs
	Burst int
}

// OutboxOptions are the budgets and bounds of an outbox; zero values mean the defaults.
type OutboxOptions struct {
	Private Budget // per private chat; 1.05 s, burst 3
	Group   Budget // per group, all its topics together; 3.15 s, burst 5
	Overall Budget // of the bot; 1/30 s, burst 30
	MaxWait int    // MustDeliver calls waiting per chat; 512
	Log     *slog.Logger
	Jitter  func() float64 // in [0, 1); nil means math/rand
}

func (o OutboxOptions) withDefaults() OutboxOptions {
	def := func(b *Budget, every time.Duration, burst int) {
		if b.Every == 0 {
			b.Every = every
		}
		if b.Burst == 0 {
			b.Burst = burst
		}
	}
	// A little slower than Telegram allows: calls that leave a second apart may arrive closer together.
	def(&o.Private, 1050*time.Millisecond, 3)
	def(&o.Group, 3150*time.Millisecond, 5)
	def(&o.Overall, time.Second/30, 30)
	if o.MaxWait == 0 {
		o.MaxWait = 512
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

// Outbox is the one way out: it owns Telegram's budgets and its rate limits. Each chat with calls waiting
// has a goroutine of its own, which ends when none waits; so no chat delays another. Calls of one chat are
// made one at a time. Safe for concurrent use.
type Outbox struct {
	opts    OutboxOptions
	overall *overall
	life    context.Context // ends what is in flight
	kill    context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex
	lanes  map[int64]*outLane
	closed bool
}

// NewOutbox makes an outbox. Call Drain to end it.
func NewOutbox(o OutboxOptions) *Outbox {
	o = o.withDefaults()
	life, kill := context.WithCancel(context.Background())
	return &Outbox{
		opts: o, life: life, kill: kill, lanes: make(map[int64]*outLane),
		overall: &overall{bucket: rate.NewLimiter(rate.Every(o.Overall.Every), o.Overall.Burst), size: o.Overall.Burst},
	}
}

// Do makes a call and waits until it is decided. The error is Run's last, one of the Err values above, or
// ctx's when it ended before the call was made. A call in flight is waited for.
func (o *Outbox) Do(ctx context.Context, c Call) error {
	if c.Class == Direct {
		return o.direct(ctx, c)
	}
	done := make(chan error, 1)
	o.Go(ctx, c, func(err error) { done <- err })
	return <-done
}

// Go makes a call of any class but Direct and returns at once. done, if not nil, is called exactly once
// with what Do would return; it must not block, and may be called before Go returns.
func (o *Outbox) Go(ctx context.Context, c Call, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	o.post(&job{Call: c, ctx: ctx, done: done})
}

// Drain ends the outbox: calls that may be missed are dropped, those that must be delivered are made until
// ctx ends, and what is left then ends with ErrClosed. It returns when nothing runs any more.
func (o *Outbox) Drain(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	var dropped []*job
	for _, l := range o.lanes {
		dropped = append(dropped, l.dropOptional()...)
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

// overall is the budget of the whole bot. Calls that can wait leave a part of it to those that cannot.
type overall struct {
	bucket *rate.Limiter
	size   int

	mu     sync.Mutex
	frozen time.Time
}

// take takes one token for class if there is one; otherwise it says how long to wait before asking again.
func (b *overall) take(now time.Time, class Class) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.frozen.Sub(now); d > 0 {
		return d
	}
	reserve := 0
	switch class {
	case Coalesce:
		reserve = b.size / 4
	case Shed:
		reserve = b.size / 2
	}
	have := b.bucket.TokensAt(now)
	if lack := float64(reserve+1) - have; lack > 0 {
		return bucketWait(lack, b.bucket.Limit())
	}
	b.bucket.AllowN(now, 1)
	return 0
}

// limited notes a rate limit. It is taken to be the bot's own, not just the chat's, when the overall
// budget is nearly spent or no chat was concerned.
func (b *overall) limited(now time.Time, after time.Duration, chat bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if chat && b.bucket.TokensAt(now) > float64(b.size)/3 {
		return
	}
	if until := now.Add(after); until.After(b.frozen) {
		b.frozen = until
	}
}

// bucketWait is the time until a bucket has lack more tokens, rounded up so that it has them then.
func bucketWait(lack float64, limit rate.Limit) time.Duration {
	return time.Duration(lack/float64(limit)*float64(time.Second)) + time.Microsecond
}

// Attend runs f, which makes calls, on a goroutine that Drain waits for. It is false, and f is not run, if
// the outbox is closed.
func (o *Outbox) Attend(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.wg.Go(f)
	return true
}

// Retract takes back a Coalesce call that waits; it ends with ErrReplaced. One in flight is left alone.
func (o *Outbox) Retract(chat ChatRef, key string) {
	o.mu.Lock()
	var taken []*job
	if l := o.lanes[chat.ID]; l != nil {
		for _, j := range l.edits {
			if j.Key == key {
				taken = append(taken, j)
				l.remove(j)
				l.signal()
				break
			}
		}
	}
	o.mu.Unlock()
	end(taken, ErrReplaced)
}
