package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"ductor/cli"
	"ductor/cli/turn"
)

// Prompt is a request that starts a turn.
type Prompt struct {
	ID     string // ID of the request, by which ductor finds the answer after a restart
	Method string
	Params any
	// Mark returns the turn's mark, which ductor needs to resume the turn after a restart. size is the size of the
	// request in bytes. The Peer stores the mark before it writes the request. If storing fails, the Peer does not
	// write the request. If Turn is empty in the mark, the Peer writes the request without storing the mark.
	Mark     func(size int) cli.Mark
	Marked   func(cli.Mark) // receives the mark after it was stored; may be nil
	Answered func(Message)  // receives the answer; called on the goroutine that reads the output
	Unsent   func(error)    // receives the error if the request was not written
}

// Ask queues a prompt and returns at once. If ctx ends before the Peer has stored the turn's mark, the Peer does not
// write the prompt.
func (p *Peer) Ask(ctx context.Context, q Prompt) {
	before := func(size int) error {
		m := q.Mark(size)
		if m.Turn == "" {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, beginLimit)
		defer cancel()
		m.Output = p.Handled()
		err := p.process.Begin(ctx, m)
		if err == nil && q.Marked != nil {
			q.Marked(m)
		}
		return err
	}
	sent := func(err error) {
		if err != nil {
			q.Unsent(err)
		}
	}
	err := p.Expect(q.ID, q.Answered)
	if err == nil {
		err = p.enqueue(Outgoing{ID: q.ID, Method: q.Method, Params: q.Params}, before, sent)
	}
	sent(err)
}

// Send queues a request and ignores its answer.
func (p *Peer) Send(method string, params any) error { return p.request(p.NextID(), method, params) }

// request queues a request. params may be nil.
func (p *Peer) request(id, method string, params any) error {
	if params == nil {
		params = struct{}{}
	}
	return p.enqueue(Outgoing{ID: id, Method: method, Params: params}, nil, nil)
}

// Notify queues a notification.
func (p *Peer) Notify(method string, params any) error {
	return p.enqueue(Outgoing{Method: method, Params: params}, nil, nil)
}

// Reply queues the answer to a request. Unless Reply itself returns an error, the Peer later calls sent with the result
// of writing. sent may be nil.
func (p *Peer) Reply(id json.RawMessage, result any, sent func(error)) error {
	if result == nil {
		result = json.RawMessage("null")
	}
	return p.enqueue(Outgoing{ID: id, Result: result}, nil, sent)
}

// Refuse queues an error as the answer to a request.
func (p *Peer) Refuse(id json.RawMessage, code int, why string) error {
	return p.enqueue(Outgoing{ID: id, Error: &Error{Code: code, Message: why}}, nil, nil)
}

func (p *Peer) enqueue(m Outgoing, before func(int) error, sent func(error)) error {
	body, err := p.opts.Codec.Encode(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	turn.Hurry(p.process.Stdout())
	return p.out.Put(turn.Parcel{Data: p.opts.Framing.Frame(body), Before: before, Sent: sent})
}
