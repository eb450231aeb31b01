package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
)

// troubleTTL is how long a failure is cached: a user who logs in wants to see the effect soon.
const troubleTTL = 5 * time.Second

// cached caches the answer of a slow query: good answers for MenuTTL, others for a short time. One fetch runs at a
// time, independent of the callers that wait for it. In the second half of its life an answer is renewed while it is
// still returned.
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

// get returns an answer that is not too old, or ctx's cause. If ctx is AtOnce, it accepts an older good answer.
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

// latest returns the answer of the fetch that has just ended, for the callers that waited for it, even if it expires at
// once.
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

// forget makes the next get fetch again.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}
