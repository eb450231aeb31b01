package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"ductor/cli"
)

const (
	terminalKept  = 1 << 20 // bytes of output that are kept when the agent names no limit, and at most
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
	Env     []pair   `json:"env"`
	Dir     string   `json:"cwd"`
	Limit   *int     `json:"outputByteLimit"`
}

type terminalParams struct {
	ID string `json:"terminalId"`
}

func createTerminal(ctx context.Context, g *ground, raw json.RawMessage) (any, error) {
	p, err := params[createParams](raw)
	if err != nil {
		return nil, err
	}
	if err := g.mayChange(); err != nil {
		return nil, err
	}
	if p.Dir == "" {
		p.Dir = g.dirs[0]
	}
	if !g.inside(p.Dir) {
		return nil, &rpcError{Code: codeBadParams, Message: "the directory is outside of the conversation's directories"}
	}
	env := g.env
	for _, v := range p.Env {
		env = append(env[:len(env):len(env)], v.Name+"="+v.Value)
	}
	// The shell only joins standard error to the output; the command is no text to it.
	process, err := g.host.provider.opts.Launcher.Start(ctx, cli.Command{
		Path: "/bin/sh", Args: append([]string{"-c", `exec "$@" 2>&1`, "sh", p.Command}, p.Args...), Dir: p.Dir, Env: env,
		For: cli.Purpose{Agent: g.host.provider.opts.Agent},
	})
	if err != nil {
		return nil, err
	}
	_ = process.Stdin().Close() // nobody types
	t := &terminal{process: process, read: make(chan struct{}), limit: terminalKept}
	if p.Limit != nil {
		t.limit = min(max(*p.Limit, 0), terminalKept)
	}
	go t.pump()
	id, err := g.enter(t)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return terminalParams{id}, nil
}

// inside says whether a directory lies in those of the session.
func (g *ground) inside(dir string) bool {
	for _, d := range g.dirs {
		if filepath.IsAbs(dir) && insideOf(d, dir) {
			return true
		}
	}
	return false
}

func (g *ground) enter(t *terminal) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || len(g.terminals) >= maxTerminals {
		return "", errors.New("too many commands at a time")
	}
	g.next++
	id := "term-" + strconv.Itoa(g.next)
	g.terminals[id] = t
	return id, nil
}

func (g *ground) find(raw json.RawMessage) (*terminal, string, error) {
	p, err := params[terminalParams](raw)
	if err != nil {
		return nil, "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.terminals[p.ID]
	if t == nil {
		return nil, "", &rpcError{Code: codeBadParams, Message: "there is no such terminal"}
	}
	return t, p.ID, nil
}

func (t *terminal) pump() {
	defer close(t.read)
	buf := make([]byte, 16<<10)
	for {
		n, err := t.process.Stdout().Read(buf)
		t.keep(buf[:n])
		var lost *cli.LostOutput
		if err != nil && !errors.As(err, &lost) {
			return // io.EOF, or nobody reads any more
		}
	}
}

// keep adds output, and lets go of its beginning where there is too much, at a character boundary.
func (t *terminal) keep(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, data...)
	if cut := len(t.output) - t.limit; cut > 0 {
		for cut < len(t.output) && !utf8.RuneStart(t.output[cut]) {
			cut++
		}
		t.output, t.truncated = append([]byte(nil), t.output[cut:]...), true
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

func terminalOutput(_ context.Context, g *ground, raw json.RawMessage) (any, error) {
	t, _, err := g.find(raw)
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

func awaitTerminal(ctx context.Context, g *ground, raw json.RawMessage) (any, error) {
	t, _, err := g.find(raw)
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

func killTerminal(_ context.Context, g *ground, raw json.RawMessage) (any, error) {
	t, _, err := g.find(raw)
	if err != nil {
		return nil, err
	}
	return none{}, t.stop()
}

func releaseTerminal(_ context.Context, g *ground, raw json.RawMessage) (any, error) {
	t, id, err := g.find(raw)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	delete(g.terminals, id)
	g.mu.Unlock()
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
