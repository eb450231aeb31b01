package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
)

// troubleTTL is how long a failure is cached. It is short so that users soon see the effect of a log-in.
const troubleTTL = 5 * time.Second

// cached caches the result of a slow query. A result for which good returns true is valid for MenuTTL, and any other
// result is valid for troubleTTL. After half of this time, get still returns the result, but also starts a query for a
// new one.
//
// Callers share a running query, unless forget was called since the query started. A query continues even if no caller
// waits for it.
type cached[T any] struct {
	*core
	fetch func(context.Context) T
	good  func(T) bool // reports whether a result is cached for MenuTTL, and not only for troubleTTL

	mu     sync.Mutex
	value  T
	at     time.Time     // when value was fetched; zero before the first result
	flight chan struct{} // closed when the running query ends; nil if none runs
}

func newCached[T any](of *core, fetch func(context.Context) T, good func(T) bool) *cached[T] {
	return &cached[T]{core: of, fetch: fetch, good: good}
}

// get returns the cached result while it is valid, and otherwise waits for a query. If ctx ends first, get returns the
// cause of ctx. If ctx comes from cli.AtOnce, get does not wait: it returns a result for which good returns true, even
// if that result has expired.
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

// latest returns the result of the last query, even if it is no longer valid. It returns false if there is none.
func (c *cached[T]) latest() (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, !c.at.IsZero()
}

// renew starts a query, unless one is running. The caller holds mu.
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
		if c.flight == flight { // forget was not called
			c.value, c.at, c.flight = value, c.opts.Now(), nil
		}
		close(flight)
	})
	if started {
		c.flight = flight
	}
}

// forget drops the result, so that the next call of get starts a query. It also drops the result of a running query,
// because that query may have read the state before a change.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.flight = time.Time{}, nil
}
