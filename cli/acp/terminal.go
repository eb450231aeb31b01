package acp

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"ductor/cli"
)

const (
	terminalKept  = 1 << 20          // bytes of output that are kept when the agent names no limit, and at most
	stopSlack     = 10 * time.Second // what stopping a command may take beyond its grace
	terminalGrace = 500 * time.Millisecond
	maxTerminals  = 32
)

// terminal is a command that runs for an agent.
type terminal struct {
	process cli.Process
	read    chan struct{} // closed when all its output was read

	mu        sync.Mutex
	limit     int
	output    []byte // the end of it
	truncated bool
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
	// The shell only joins standard error to the output; the command is no text to it.
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
	go t.pump()
	id, err := w.enter(t)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return terminalParams{id}, nil
}

func (w *workspace) enter(t *terminal) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.terminals) >= maxTerminals {
		return "", errors.New("too many commands at a time")
	}
	w.next++
	id := "term-" + strconv.Itoa(w.next)
	w.terminals[id] = t
	return id, nil
}

// find gives a terminal, until it is released.
func (w *workspace) find(p terminalParams) (*terminal, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.terminals[p.ID]; t != nil {
		return t, nil
	}
	return nil, badParams("there is no such terminal")
}

func (t *terminal) pump() {
	defer close(t.read)
	buf := make([]byte, 16<<10)
	for {
		n, err := t.process.Stdout().Read(buf)
		t.keep(buf[:n])
		var lost *cli.LostOutput
		if err != nil && !errors.As(err, &lost) {
			return // io.EOF, or the terminal was closed
		}
	}
}

// keep adds output, and drops its beginning where there is too much, at a character boundary.
func (t *terminal) keep(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, data...)
	if cut := len(t.output) - t.limit; cut > 0 {
		for cut < len(t.output) && !utf8.RuneStart(t.output[cut]) {
			cut++
		}
		t.output, t.truncated = slices.Clone(t.output[cut:]), true
	}
}

type exitStatus struct {
	Code   *int    `json:"exitCode"`
	Signal *string `json:"signal"`
}

type outputResult struct {
	Output    string      `json:"output"`
	Truncated bool        `json:"truncated"`
	Exit      *exitStatus `json:"exitStatus,omitempty"`
}

func (w *workspace) terminalOutput(_ context.Context, p terminalParams) (any, error) {
	t, err := w.find(p)
	if err != nil {
		return nil, err
	}
	exit := t.exit()
	t.mu.Lock()
	defer t.mu.Unlock()
	return outputResult{Output: string(t.output), Truncated: t.truncated, Exit: exit}, nil
}

// exit is how the command ended; nil while it runs.
func (t *terminal) exit() *exitStatus {
	select {
	case <-t.process.Done():
	default:
		return nil
	}
	e := t.process.Exit()
	if e.Signal {
		name := strconv.Itoa(-e.Code)
		return &exitStatus{Signal: &name}
	}
	return &exitStatus{Code: &e.Code}
}

func (w *workspace) awaitTerminal(ctx context.Context, p terminalParams) (any, error) {
	t, err := w.find(p)
	if err != nil {
		return nil, err
	}
	for _, done := range []<-chan struct{}{t.process.Done(), t.read} {
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return t.exit(), nil
}

func (w *workspace) killTerminal(_ context.Context, p terminalParams) (any, error) {
	t, err := w.find(p)
	if err != nil {
		return nil, err
	}
	return none{}, t.stop()
}

func (w *workspace) releaseTerminal(_ context.Context, p terminalParams) (any, error) {
	t, err := w.find(p)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	delete(w.terminals, p.ID)
	w.mu.Unlock()
	return none{}, t.close()
}

func (t *terminal) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), terminalGrace+stopSlack)
	defer cancel()
	return t.process.Stop(ctx, terminalGrace)
}

// close ends the command and waits until its output was read.
func (t *terminal) close() error {
	err := t.stop()
	select {
	case <-t.read:
		return err
	case <-time.After(stopSlack):
		return errors.Join(err, io.ErrNoProgress)
	}
}
