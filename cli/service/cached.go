package service

import (
	"context"
	"sync"
	"time"

	"ductor/cli"
)

// cached keeps what a slow question was answered, for as long as keep says of the answer. One fetch runs
// at a time, apart from those who wait for it. In the second half of its life an answer is renewed while
// it is still given out.
type cached[T any] struct {
	now   func() time.Time
	keep  func(T) time.Duration
	fetch func() T
	spawn func(func()) bool // runs a goroutine that its owner waits for; false when the owner is closed

	mu     sync.Mutex
	value  T
	at     time.Time // zero before the first answer
	flight chan struct{}
}

// get returns an answer that is not older than keep allows, or ctx's cause.
func (c *cached[T]) get(ctx context.Context) (T, error) {
	for {
		c.mu.Lock()
		age, life := c.now().Sub(c.at), c.keep(c.value)
		fresh := !c.at.IsZero() && age < life
		if !fresh || age >= life/2 {
			c.renew()
		}
		value, flight := c.value, c.flight
		c.mu.Unlock()
		if fresh {
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

// latest is the answer of the flight that just ended: good for those who waited, however short it is kept.
func (c *cached[T]) latest() (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, !c.at.IsZero()
}

// renew is called with mu held.
func (c *cached[T]) renew() {
	if c.flight != nil {
		return
	}
	flight := make(chan struct{})
	started := c.spawn(func() {
		value := c.fetch()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.value, c.at, c.flight = value, c.now(), nil
		close(flight)
	})
	if started {
		c.flight = flight
	}
}

// forget makes the next get ask anew.
func (c *cached[T]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}
