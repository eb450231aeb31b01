package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"ductor/cli"
	"ductor/cli/turn"
)

// Prompt is the request that asks for a turn.
type Prompt struct {
	ID     string // the next process of ductor knows the answer by it
	Method string
	Params any
	// Mark is where the turn begins, given the size of the request. It is recorded right before that is written, unless it
	// has no Turn; nothing is written between, and a request whose Mark cannot be recorded is not written.
	Mark     func(size int) cli.Mark
	Marked   func(cli.Mark) // gets what was recorded; may be nil
	Answered func(Message)  // gets the answer, on the goroutine that reads
	Unsent   func(error)    // is told why the request was not written, if it was not
}

// Ask queues a prompt and returns at once. The end of ctx has it not recorded.
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
		err = p.put(outgoing{ID: q.ID, Method: q.Method, Params: q.Params}, before, sent)
	}
	sent(err)
}

// Send queues a request whose answer is not waited for.
func (p *Peer) Send(method string, params any) error { return p.request(p.NextID(), method, params) }

// request queues a request; params may be nil.
func (p *Peer) request(id, method string, params any) error {
	if params == nil {
		params = struct{}{}
	}
	return p.put(outgoing{ID: id, Method: method, Params: params}, nil, nil)
}

// Notify queues a notification.
func (p *Peer) Notify(method string, params any) error {
	return p.put(outgoing{Method: method, Params: params}, nil, nil)
}

// Reply queues the answer to a request. sent is told how writing went, unless Reply failed; it may be nil.
func (p *Peer) Reply(id json.RawMessage, result any, sent func(error)) error {
	if result == nil {
		result = json.RawMessage("null")
	}
	return p.put(outgoing{ID: id, Result: result}, nil, sent)
}

// Refuse queues an answer that says why there is none.
func (p *Peer) Refuse(id json.RawMessage, code int, why string) error {
	return p.put(outgoing{ID: id, Error: &Error{Code: code, Message: why}}, nil, nil)
}

func (p *Peer) put(m outgoing, before func(int) error, sent func(error)) error {
	m.Version = p.opts.Version
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	turn.Hurry(p.process.Stdout())
	return p.out.Put(turn.Parcel{Data: p.opts.Framing.Frame(body), Before: before, Sent: sent})
}
