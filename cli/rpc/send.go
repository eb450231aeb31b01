package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"ductor/cli"
	"ductor/cli/turn"
)

// Request is a request of ours. One without ID gets an id of its own.
type Request struct {
	ID     string
	Method string
	Params any // nil is an empty object
	// Before is called on the goroutine that writes, right before the request's size bytes; nothing is written between.
	// The request is not written when it fails. May be nil.
	Before func(size int) error
	// Sent is told how writing went, unless Send failed. May be nil.
	Sent func(error)
}

// Send queues a request and returns at once.
func (p *Peer) Send(r Request) error {
	if r.ID == "" {
		r.ID = p.NextID()
	}
	if r.Params == nil {
		r.Params = struct{}{}
	}
	return p.put(outgoing{ID: r.ID, Method: r.Method, Params: r.Params}, r.Before, r.Sent)
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

// Begin records with the process that m begins after what was handled so far, and gives it with its Output filled in. It
// is meant for Request.Before.
func (p *Peer) Begin(ctx context.Context, m cli.Mark) (cli.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, beginLimit)
	defer cancel()
	m.Output = p.Handled()
	return m, p.process.Begin(ctx, m)
}
