package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
)

// troubleTTL is how long a failure is cached. It is short, because a user who has logged in wants to see the effect
// soon.
const troubleTTL = 5 * time.Second

// cached caches the answer of a slow query. Good answers are valid for MenuTTL, others for a short time. Only one fetch
// runs at a time, and it continues even if no caller waits for it. In the second half of an answer's validity, get
// returns it and renews it in the background.
type cached[T any] struct {
	*core
	fetch func(context.Context) T
	good  func(T) bool

	mu     sync.Mutex
	value  T
	at     time.Time // zero before the first answer
	flight chan struct{}
}

func newCached[T any](of *core, fetch func(context.Context) T, good func(T) bool) *cached[T] {
	return &cached[T]{core: of, fetch: fetch, good: good}
}

// get returns an answer that is still valid, or the cause of ctx. If ctx is AtOnce, get also returns an older good
// answer.
func (c *cached[T]) get(ctx context.Context) (T, error) {
	for {
		c.mu.Lock()
		age, life := c.opts.Now().Sub(c.at), c.opts.MenuTTL
		if !c.good(c.value) {
			life = min(troubleTTL, life)
		}
		known := !c.at.IsZero() && c.good(c.value)
		fresh := !c.at.IsZero() && age < life
		if !fresh || age >= life/2 {
			c.renew()
		}
		value, flight := c.value, c.flight
		c.mu.Unlock()
		if fresh || known && errors.Is(context.Cause(ctx), cli.ErrLoading) {
			return value, nil
		}
		if flight == nil {
			return value, cli.ErrClosing
		}
		select {
		case <-flight:
			if value, ok := c.latest(); ok {
				return value, nil
			}
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}

// latest returns the answer of the fetch that has just ended. It is for the callers that waited for the fetch, even if
// the answer is no longer valid.
func (c *cached[T]) latest() (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, !c.at.IsZero()
}

// renew starts a fetch. mu is held.
func (c *cached[T]) renew() {
	if c.flight != nil {
		return
	}
	flight := make(chan struct{})
	started := c.work.spawn(func() {
		ctx, cancel := context.WithTimeout(c.base, c.opts.MenuWait)
		defer cancel()
		value := c.fetch(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.value, c.at, c.flight = value, c.opts.Now(), nil
		close(flight)
	})
	if started {
		c.flight = flight
	}
}

// forget makes the next get start a fetch.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}
