package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	opts *Options
	env  []string
	dirs []string // the first is the working directory

	mu        sync.Mutex
	readOnly  bool // plan mode
	closed    bool
	next      int
	terminals map[string]*terminal
}

func newWorkspace(proc *agentProcess, req cli.Request) *workspace {
	return &workspace{
		opts: &proc.provider.opts, env: proc.provider.env(req), dirs: append([]string{req.Dir}, req.AddDirs...),
		readOnly: req.Permission == cli.Plan, terminals: map[string]*terminal{},
	}
}

// allow sets what the turn that begins allows.
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
	all := w.terminals
	w.terminals = nil
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

// service serves one method.
type service func(ctx context.Context, w *workspace, params json.RawMessage) (any, error)

// serving is f behind the decoding of its parameters.
func serving[P any](f func(*workspace, context.Context, P) (any, error)) service {
	return func(ctx context.Context, w *workspace, raw json.RawMessage) (any, error) {
		var p P
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, badParams("the request cannot be read: %v", err)
		}
		return f(w, ctx, p)
	}
}

func badParams(format string, args ...any) error {
	return &rpc.Error{Code: rpc.CodeBadParams, Message: fmt.Sprintf(format, args...)}
}

// service finds what serves a method; nil if nothing does.
func (o *Options) service(method string) service {
	if o.NoFiles && strings.HasPrefix(method, "fs/") || o.NoTerminals && strings.HasPrefix(method, "terminal/") {
		return nil
	}
	switch method {
	case "fs/read_text_file":
		return serving((*workspace).readFile)
	case "fs/write_text_file":
		return serving((*workspace).writeFile)
	case "terminal/create":
		return serving((*workspace).createTerminal)
	case "terminal/output":
		return serving((*workspace).terminalOutput)
	case "terminal/wait_for_exit":
		return serving((*workspace).awaitTerminal)
	case "terminal/kill":
		return serving((*workspace).killTerminal)
	case "terminal/release":
		return serving((*workspace).releaseTerminal)
	}
	return nil
}
