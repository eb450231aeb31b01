package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"ductor/cli"
)

// talk begins to read and write.
func (h *host) talk(process cli.Process, from, until int64) {
	h.process, h.out = process, newWriter(process.Stdin())
	h.past, h.handled = until >= 0, from
	go h.pump(from, until)
}

func (h *host) pump(from, until int64) {
	defer close(h.pumped)
	err := readLines(h.process.Stdout(), from, until, h.deal)
	h.mu.Lock()
	h.readErr, h.tainted = err, true
	sessions := h.members()
	h.mu.Unlock()
	h.provider.retire(h)
	h.out.drop()
	for _, s := range sessions {
		s.inbox.put(item{ended: true})
	}
}

// members is called with mu held.
func (h *host) members() []*session {
	list := make([]*session, 0, len(h.sessions))
	for _, s := range h.sessions {
		list = append(list, s)
	}
	return list
}

// deal hands on one line.
func (h *host) deal(ev lineEvent) {
	switch {
	case ev.lost != nil, ev.caughtUp:
		h.tellAll(item{at: ev.end, lost: ev.lost, caughtUp: ev.caughtUp})
	case ev.oversized:
		h.unreadable(ev)
	case len(strings.TrimSpace(string(ev.line[:min(len(ev.line), 1)]))) == 0 && len(strings.TrimSpace(string(ev.line))) == 0:
	default:
		var m message
		if err := json.Unmarshal(ev.line, &m); err != nil {
			h.unreadable(ev)
			break
		}
		h.take(&m, ev.end)
	}
	h.mu.Lock()
	h.handled = ev.end
	h.past = h.past && !ev.caughtUp
	h.mu.Unlock()
}

func (h *host) unreadable(ev lineEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.garbages++
	if h.garbage == nil {
		h.garbage = append([]byte{}, ev.line[:min(len(ev.line), oversizeHead)]...)
	}
}

func (h *host) tellAll(i item) {
	h.mu.Lock()
	sessions := h.members()
	h.mu.Unlock()
	for _, s := range sessions {
		s.deliver(i)
	}
}

// take sorts a message by what it is.
func (h *host) take(m *message, at int64) {
	switch {
	case m.Method == "":
		h.answered(m, at)
	case m.Method == methodUpdate:
		var p updateParams
		if json.Unmarshal(m.Params, &p) == nil {
			h.deliver(p.SessionID, item{at: at, update: p.Update})
		}
	case m.Method == methodCancelRequest:
		var p cancelRequestParams
		if json.Unmarshal(m.Params, &p) == nil {
			h.tellAll(item{at: at, withdrawn: string(p.RequestID)})
		}
	case len(m.ID) == 0: // a notification that is not known
	case m.Method == methodAsk:
		h.asked(m, at)
	default:
		h.asksUs(m)
	}
}

// answered takes a response. One that nobody waits for is dropped: it came twice, too late, or was meant for an
// earlier ductor.
func (h *host) answered(m *message, at int64) {
	id := idOf(m.ID)
	h.mu.Lock()
	waits, session := h.calls[id], h.prompts[id]
	delete(h.calls, id)
	delete(h.prompts, id)
	h.mu.Unlock()
	switch {
	case waits != nil:
		waits <- m // has room: each id is answered once
	case session != nil:
		session.deliver(item{at: at, reply: m})
	}
}

// idOf is an id as it was made, whether the agent gives it back as a string or not.
func idOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (h *host) deliver(session string, i item) {
	h.mu.Lock()
	s := h.sessions[session]
	h.mu.Unlock()
	if s != nil {
		s.deliver(i)
	}
}

// asked takes a request for permission.
func (h *host) asked(m *message, at int64) {
	var p askParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		h.refuse(m.ID, codeBadParams, "the request cannot be read")
		return
	}
	h.mu.Lock()
	s, gone := h.sessions[p.SessionID], h.detached
	h.mu.Unlock()
	if gone { // it is for the next ductor
		return
	}
	if s == nil || !s.deliver(item{at: at, ask: &ask{id: m.ID, params: p, raw: m.Params}}) {
		h.respond(m.ID, cancelled())
	}
}

// call sends a request and waits for its answer, at most as long as Options say. Errors are *rpcError where the
// agent gave one.
func (h *host) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, h.provider.opts.CallLimit)
	defer cancel()
	answer := make(chan *message, 1)
	h.mu.Lock()
	h.next++
	id := h.ids + "-" + strconv.Itoa(h.next)
	h.calls[id] = answer
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, id)
	}()
	if err := h.send(request{ID: id, Method: method, Params: params}); err != nil {
		return err
	}
	select {
	case m := <-answer:
		return read(method, m, result)
	case <-h.pumped:
		return h.failure()
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer to %s: %w", method, context.Cause(ctx))
	}
}

func read(method string, m *message, result any) error {
	if m.Error != nil {
		return m.Error
	}
	if result == nil || len(m.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("read the answer to %s: %w", method, err)
	}
	return nil
}

func (h *host) send(r request) error {
	r.JSONRPC = "2.0"
	line, err := encode(r)
	if err != nil {
		return err
	}
	return h.out.send(parcel{line: line})
}

func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return append(line, '\n'), nil
}

// respond answers a request of the agent's.
func (h *host) respond(id json.RawMessage, result any) {
	h.reply(response{ID: id, Result: result}, nil)
}

func (h *host) refuse(id json.RawMessage, code int, text string) {
	h.reply(response{ID: id, Error: &rpcError{Code: code, Message: text}}, nil)
}

// reply sends a response; sent is told when it is written, or that it was not.
func (h *host) reply(r response, sent func(error)) {
	r.JSONRPC = "2.0"
	line, err := encode(r)
	if err == nil {
		err = h.out.send(parcel{line: line, sent: sent})
	}
	if err != nil && sent != nil {
		sent(err)
	}
}
