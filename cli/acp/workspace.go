package acp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"ductor/cli"
	"ductor/cli/rpc"
)

const maxTerminals = 32

// workspace reads files, writes files and runs commands for the agent, only in the directories of the session. Safe for
// concurrent use.
type workspace struct {
	opts *Options
	env  []string
	dirs []string // the working directory first
	note func(served)

	mu        sync.Mutex
	readOnly  bool // in plan mode
	next      int
	terminals map[string]*terminal // nil after the session was closed
}

func newWorkspace(s *session, req cli.Request) *workspace {
	o := s.process.options()
	return &workspace{
		opts: o, env: o.env(req), dirs: append([]string{req.Dir}, req.AddDirs...),
		note:     func(n served) { s.deliver(news{served: &n}, 0, 0) },
		readOnly: req.Permission == cli.Plan, terminals: map[string]*terminal{},
	}
}

// allow sets the permission mode that applies to the agent's next requests.
func (w *workspace) allow(mode cli.PermissionMode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readOnly = mode == cli.Plan
}

func (w *workspace) mayChange() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.terminals == nil {
		return errors.New("the session is closed")
	}
	if w.readOnly {
		return errors.New("the conversation is in plan mode: nothing may be changed or run")
	}
	return nil
}

// close stops all running commands with their descendants. Further requests fail.
func (w *workspace) close() error {
	w.mu.Lock()
	all := w.terminals
	w.terminals = nil
	w.mu.Unlock()
	var errs []error
	for _, t := range all {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}

type createParams struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	Dir   string `json:"cwd"`
	Limit *int   `json:"outputByteLimit"`
}

type terminalParams struct {
	ID string `json:"terminalId"`
}

func (w *workspace) createTerminal(ctx context.Context, p createParams) (any, error) {
	if err := w.mayChange(); err != nil {
		return nil, err
	}
	if p.Dir == "" {
		p.Dir = w.dirs[0]
	}
	inside := func(dir string) bool { return cli.Lies(cli.RealPath(p.Dir), cli.RealPath(dir)) }
	if !filepath.IsAbs(p.Dir) || !slices.ContainsFunc(w.dirs, inside) {
		return nil, badParams("the directory is outside of the conversation's directories")
	}
	env := slices.Clone(w.env)
	for _, v := range p.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	// The shell only redirects standard error to the output. It does not interpret the command.
	process, err := w.opts.Launcher.Start(ctx, cli.Command{
		Path: "/bin/sh", Args: append([]string{"-c", `exec "$@" 2>&1`, "sh", p.Command}, p.Args...), Dir: p.Dir, Env: env,
		For: cli.Purpose{Agent: w.opts.Agent},
	})
	if err != nil {
		return nil, err
	}
	_ = process.Stdin().Close() // the command has no input
	t := &terminal{process: process, read: make(chan struct{}), limit: terminalKept}
	if p.Limit != nil {
		t.limit = min(max(*p.Limit, 0), terminalKept)
	}
	id, err := w.enter(t)
	go t.pump(func(end cli.ToolEnded) { w.note(served{terminal: id, end: &end}) })
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return terminalParams{id}, nil
}

func (w *workspace) enter(t *terminal) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.terminals == nil || len(w.terminals) >= maxTerminals {
		return "", errors.New("too many commands at a time")
	}
	w.next++
	id := "term-" + strconv.Itoa(w.next)
	w.terminals[id] = t
	return id, nil
}

// onTerminal returns a service that finds the terminal of a request and calls f with it.
func onTerminal(f func(*terminal, context.Context) (any, error)) func(*workspace, context.Context, terminalParams) (any, error) {
	return func(w *workspace, ctx context.Context, p terminalParams) (any, error) {
		w.mu.Lock()
		t := w.terminals[p.ID]
		w.mu.Unlock()
		if t == nil {
			return nil, badParams("there is no such terminal")
		}
		return f(t, ctx)
	}
}

func (w *workspace) releaseTerminal(_ context.Context, p terminalParams) (any, error) {
	w.mu.Lock()
	t := w.terminals[p.ID]
	delete(w.terminals, p.ID)
	w.mu.Unlock()
	if t == nil {
		return nil, badParams("there is no such terminal")
	}
	return none{}, t.close()
}

func badParams(format string, args ...any) error {
	return &rpc.Error{Code: rpc.CodeBadParams, Message: fmt.Sprintf(format, args...)}
}
