package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

// maxPending is how many calls may wait for an answer at a time.
const maxPending = 1 << 10

var errTooManyCalls = errors.New("too many calls wait for an answer")

// calls are the requests of ours that wait for an answer. Safe for concurrent use.
type calls struct {
	prefix string // of their ids: no other connection to the same program has it

	mu      sync.Mutex
	next    int
	pending map[string]func(Message) // nil once no answer comes any more
}

func newCalls() *calls {
	return &calls{prefix: uuid.NewString()[:8] + "-", pending: map[string]func(Message){}}
}

// answered hands an answer to the call that waits for it. It passes over one that came twice or too late, and one to the
// previous process.
func (c *calls) answered(m Message) {
	id := Text(m.ID)
	c.mu.Lock()
	f := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if f != nil {
		f(m)
	}
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = nil
}

// NextID makes an id that no other request to the program has.
func (p *Peer) NextID() string {
	c := p.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.prefix + strconv.Itoa(c.next)
}

// Expect has f called once, on the goroutine that reads, with the answer to the request of this id.
func (p *Peer) Expect(id string, f func(Message)) error {
	c := p.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pending == nil:
		return ErrEnded
	case len(c.pending) >= maxPending:
		return errTooManyCalls
	}
	c.pending[id] = f
	return nil
}

// Forget undoes Expect.
func (p *Peer) Forget(id string) {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	delete(p.calls.pending, id)
}

// Call sends a request and waits for the answer, which is read into result unless that is nil. A refusal gives an error
// with an *Error in its chain, and the end of the output one that is ErrEnded.
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	id, answer := p.NextID(), make(chan Message, 1)
	err := p.Expect(id, func(m Message) { answer <- m })
	if err == nil {
		defer p.Forget(id)
		err = p.request(id, method, params)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		return m.Read(p.opts.Agent, method, result)
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer to %s: %w", method, context.Cause(ctx))
	case <-p.ended:
	}
	select {
	case m := <-answer: // the last that was said
		return m.Read(p.opts.Agent, method, result)
	default:
		return fmt.Errorf("%s: %w", method, ErrEnded)
	}
}
