package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ductor/cli"
)

// maxServed is how many requests of an agent may be worked on at a time; waiting for a command is one.
const maxServed = 128

// ground is what the agent of a session may use through us: files in its directories, and commands run there. Safe
// for concurrent use.
type ground struct {
	host *host
	env  []string
	dirs []string // the first is the working directory

	mu        sync.Mutex
	readOnly  bool // plan mode
	closed    bool
	next      int
	terminals map[string]*terminal
}

func newGround(h *host, req cli.Request) *ground {
	return &ground{
		host: h, env: h.provider.env(req), dirs: append([]string{req.Dir}, req.AddDirs...),
		readOnly: req.Permission == cli.Plan, terminals: map[string]*terminal{},
	}
}

// allow says what the turn that begins allows.
func (g *ground) allow(req cli.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readOnly = req.Permission == cli.Plan
}

func (g *ground) mayChange() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.New("the session is closed")
	}
	if g.readOnly {
		return errors.New("the conversation is in plan mode: nothing may be changed or run")
	}
	return nil
}

// close ends the commands that still run, with everything they started.
func (g *ground) close() error {
	g.mu.Lock()
	g.closed = true
	var all []*terminal
	for _, t := range g.terminals {
		all = append(all, t)
	}
	clear(g.terminals)
	g.mu.Unlock()
	var errs []error
	for _, t := range all {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}

// asksUs serves a request of the agent's for files or commands.
func (h *host) asksUs(m *message) {
	serve := h.service(m.Method)
	if serve == nil {
		h.refuse(m.ID, codeNoMethod, "ductor does not know "+oneLine(m.Method))
		return
	}
	var p sessionParams
	_ = json.Unmarshal(m.Params, &p) // one that cannot be read names no session
	h.mu.Lock()
	s, past, gone, busy := h.sessions[p.SessionID], h.past, h.detached, h.served >= maxServed
	if s != nil && !past && !gone && !busy {
		h.served++
		h.serving.Add(1)
	}
	h.mu.Unlock()
	switch {
	case gone: // it is for the next ductor
	case s == nil:
		h.refuse(m.ID, codeBadParams, "there is no such session")
	case past: // it was served by an earlier ductor, or is lost with it
		h.refuse(m.ID, codeInternal, "ductor was restarted meanwhile; ask again")
	case busy:
		h.refuse(m.ID, codeInternal, "too many requests at a time")
	default:
		go h.serveOne(m, s.ground, serve)
	}
}

type service func(ctx context.Context, g *ground, params json.RawMessage) (any, error)

func (h *host) serveOne(m *message, g *ground, serve service) {
	defer h.serving.Done()
	result, err := serve(h.life, g, m.Params)
	h.mu.Lock()
	h.served--
	h.mu.Unlock()
	var rpc *rpcError
	switch {
	case err == nil:
		h.respond(m.ID, result)
	case errors.As(err, &rpc):
		h.refuse(m.ID, rpc.Code, rpc.Message)
	default:
		h.refuse(m.ID, codeInternal, oneLine(err.Error()))
	}
}

// service finds what serves a method; nil if nothing does.
func (h *host) service(method string) service {
	o := h.provider.opts
	if !o.NoFiles {
		switch method {
		case methodRead:
			return readFile
		case methodWrite:
			return writeFile
		}
	}
	if o.NoTerminals {
		return nil
	}
	switch method {
	case methodTerminal:
		return createTerminal
	case methodOutput:
		return terminalOutput
	case methodWait:
		return awaitTerminal
	case methodKill:
		return killTerminal
	case methodRelease:
		return releaseTerminal
	}
	return nil
}

func params[T any](raw json.RawMessage) (T, error) {
	var p T
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, &rpcError{Code: codeBadParams, Message: fmt.Sprintf("the request cannot be read: %v", err)}
	}
	return p, nil
}
