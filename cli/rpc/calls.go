package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

// maxPending is the maximum number of calls that wait for an answer.
const maxPending = 1 << 10

var errTooManyCalls = errors.New("too many calls wait for an answer")

// calls contains ductor's requests that the program has not answered yet. Safe for concurrent use.
type calls struct {
	prefix string // prefix of the IDs of requests; differs for each connection to the program

	mu      sync.Mutex
	next    int
	pending map[string]func(Message) // by request ID; nil after the end of the output, when no more answers come
}

func newCalls() *calls {
	return &calls{prefix: uuid.NewString()[:8] + "-", pending: map[string]func(Message){}}
}

// deliverAnswer passes an answer to the call that waits for it. It ignores duplicate and late answers, and answers to
// requests from before a restart of ductor.
func (c *calls) deliverAnswer(m Message) {
	id := Text(m.ID)
	c.mu.Lock()
	f := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if f != nil {
		f(m)
	}
}

func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = nil
}

// NextID returns an ID that no other request to the program uses.
func (p *Peer) NextID() string {
	c := p.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.prefix + strconv.Itoa(c.next)
}

// Expect makes the Peer call f with the answer to the request with this ID. The goroutine that reads the program's
// output calls f, at most once.
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

// Forget removes the function that Expect registered.
func (p *Peer) Forget(id string) {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	delete(p.calls.pending, id)
}

// Call sends a request and waits for the answer. It decodes the answer into result, unless result is nil. If the
// program rejects the request, the error wraps an *Error. If the program's output ends first, the error wraps ErrEnded.
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
		if p.opts.Cancels != "" {
			_ = p.Notify(p.opts.Cancels, map[string]string{"requestId": id}) // fails only if the program has exited
		}
		return fmt.Errorf("wait for the answer to %s: %w", method, context.Cause(ctx))
	case <-p.ended:
	}
	select {
	case m := <-answer: // the answer may have come just before the program ended
		return m.Read(p.opts.Agent, method, result)
	default:
		return fmt.Errorf("%s: %w", method, ErrEnded)
	}
}
