package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// maxServed is how many requests of an agent may be worked on at a time; waiting for a command is one.
const maxServed = 128

// workspace is what the agent of a session may use through us: files in its directories, and commands run there. Safe
// for concurrent use.
type workspace struct {
	process *agentProcess
	env     []string
	dirs    []string // the first is the working directory

	mu        sync.Mutex
	readOnly  bool // plan mode
	closed    bool
	next      int
	terminals map[string]*terminal
}

func newWorkspace(proc *agentProcess, req cli.Request) *workspace {
	return &workspace{
		process: proc, env: proc.provider.env(req), dirs: append([]string{req.Dir}, req.AddDirs...),
		readOnly: req.Permission == cli.Plan, terminals: map[string]*terminal{},
	}
}

// allow says what the turn that begins allows.
func (w *workspace) allow(req cli.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readOnly = req.Permission == cli.Plan
}

func (w *workspace) mayChange() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("the session is closed")
	}
	if w.readOnly {
		return errors.New("the conversation is in plan mode: nothing may be changed or run")
	}
	return nil
}

// close ends the commands that still run, with everything they started.
func (w *workspace) close() error {
	w.mu.Lock()
	w.closed = true
	var all []*terminal
	for _, t := range w.terminals {
		all = append(all, t)
	}
	clear(w.terminals)
	w.mu.Unlock()
	var errs []error
	for _, t := range all {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}

// serveRequest serves a request of the agent for files or commands.
func (proc *agentProcess) serveRequest(m rpc.Message, serve service) {
	var p sessionParams
	_ = json.Unmarshal(m.Params, &p) // one that cannot be read names no session
	s, known := proc.sessions.Of(cli.AgentSessionID(p.SessionID))
	switch {
	case proc.State() == shared.Detached: // the next process answers it
	case !known:
		proc.refuse(m.ID, rpc.CodeBadParams, "there is no such session")
	case proc.Peer().Past(): // the previous process served it, or it is lost
		proc.refuse(m.ID, rpc.CodeInternal, "ductor was restarted; ask again")
	case proc.served.Add(1) > maxServed:
		proc.served.Add(-1)
		proc.refuse(m.ID, rpc.CodeInternal, "too many requests at a time")
	default:
		proc.Go(func() { proc.serveOne(m, s.workspace, serve) })
	}
}

type service func(ctx context.Context, w *workspace, params json.RawMessage) (any, error)

func (proc *agentProcess) serveOne(m rpc.Message, w *workspace, serve service) {
	result, err := serve(proc.Life(), w, m.Params)
	proc.served.Add(-1)
	var refused *rpc.Error
	switch {
	case err == nil:
		proc.respond(m.ID, result)
	case errors.As(err, &refused):
		proc.refuse(m.ID, refused.Code, refused.Message)
	default:
		proc.refuse(m.ID, rpc.CodeInternal, cli.ShortLine(err.Error()))
	}
}

// service finds what serves a method; nil if nothing does.
func (proc *agentProcess) service(method string) service {
	o := proc.provider.opts
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
		return p, &rpc.Error{Code: rpc.CodeBadParams, Message: fmt.Sprintf("the request cannot be read: %v", err)}
	}
	return p, nil
}
