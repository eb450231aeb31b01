package workspace

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ductor/cli"
)

// MaxOutput is the maximum and default size of the stored output of a command, in bytes.
const MaxOutput = 1 << 20

const (
	maxCommands = 32
	stopGrace   = 500 * time.Millisecond // time for a command to end by itself before it is killed
	stopSlack   = 10 * time.Second       // time that a stop may take in addition to stopGrace
)

// RunRequest holds the parameters of MethodRun.
type RunRequest struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	Dir   string `json:"cwd"`
	Limit *int   `json:"outputByteLimit"`
}

// RunResult is the response to MethodRun. Terminal is the ID of the command's terminal.
type RunResult struct {
	Terminal string `json:"terminalId"`
}

func (w *Workspace) run(ctx context.Context, p RunRequest) (any, error) {
	if err := w.mayChange(); err != nil {
		return nil, err
	}
	if p.Dir == "" {
		p.Dir = w.opts.Dirs[0]
	}
	inside := func(dir string) bool { return cli.Lies(cli.RealPath(p.Dir), cli.RealPath(dir)) }
	if !filepath.IsAbs(p.Dir) || !slices.ContainsFunc(w.opts.Dirs, inside) {
		return nil, badParams("the directory is outside of the conversation's directories")
	}
	env := slices.Clone(w.opts.Env)
	for _, v := range p.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	// The shell only redirects standard error to the output. It does not interpret the command.
	process, err := w.opts.Launcher.Start(ctx, cli.Command{
		Path: "/bin/sh", Args: append([]string{"-c", `exec "$@" 2>&1`, "sh", p.Command}, p.Args...),
		Dir: p.Dir, Env: env, For: cli.Purpose{Agent: w.opts.Agent},
	})
	if err != nil {
		return nil, err
	}
	_ = process.Stdin().Close() // the command has no input
	c := &command{process: process, read: make(chan struct{}), limit: MaxOutput}
	if p.Limit != nil {
		c.limit = min(max(*p.Limit, 0), MaxOutput)
	}
	id, err := w.add(c)
	go c.pump(func(end cli.ToolEnded) { w.opts.Ended(id, end) })
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return RunResult{id}, nil
}

// add stores a command and returns the ID of its terminal.
func (w *Workspace) add(c *command) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.commands == nil || len(w.commands) >= maxCommands {
		return "", errors.New("too many commands at a time")
	}
	w.next++
	id := "term-" + strconv.Itoa(w.next)
	w.commands[id] = c
	return id, nil
}

// onCommand returns a service that calls f with the command that a request names.
func onCommand(f func(*command, context.Context) (any, error)) service {
	return serving(func(w *Workspace, ctx context.Context, p RunResult) (any, error) {
		w.mu.Lock()
		c := w.commands[p.Terminal]
		w.mu.Unlock()
		if c == nil {
			return nil, badParams("there is no such terminal")
		}
		return f(c, ctx)
	})
}

// release stops a command and forgets it.
func (w *Workspace) release(_ context.Context, p RunResult) (any, error) {
	w.mu.Lock()
	c := w.commands[p.Terminal]
	delete(w.commands, p.Terminal)
	w.mu.Unlock()
	if c == nil {
		return nil, badParams("there is no such terminal")
	}
	return struct{}{}, c.close()
}

// command is a command that ductor runs for an agent. The protocol calls it a terminal.
type command struct {
	process cli.Process
	read    chan struct{} // closed after all output was read

	mu        sync.Mutex
	limit     int
	tail      []byte // the end of the output, at most limit bytes
	truncated bool
}

// pump reads the command's output until the command ends, and then calls onEnd.
func (c *command) pump(onEnd func(cli.ToolEnded)) {
	defer close(c.read)
	buf := make([]byte, 16<<10)
	for {
		n, err := c.process.Stdout().Read(buf)
		c.keep(buf[:n])
		var lost *cli.LostOutput
		if err != nil && !errors.As(err, &lost) { // io.EOF, or the command was stopped
			break
		}
	}
	<-c.process.Done()
	code := c.process.Exit().Code
	if code < 0 { // report a signal as shells do
		code = 128 - code
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	onEnd(cli.ToolEnded{Output: strings.ToValidUTF8(string(c.tail), "\uFFFD"), ExitCode: &code})
}

// keep appends data to the stored output. It drops the beginning of the output beyond the limit, at a character
// boundary.
func (c *command) keep(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = append(c.tail, data...)
	if cut := len(c.tail) - c.limit; cut > 0 {
		for cut < len(c.tail) && !utf8.RuneStart(c.tail[cut]) {
			cut++
		}
		c.tail, c.truncated = slices.Clone(c.tail[cut:]), true
	}
}

type exitStatus struct {
	Code   *int    `json:"exitCode"`
	Signal *string `json:"signal"`
}

// exit returns how the command ended, or nil while the command runs.
func (c *command) exit() *exitStatus {
	select {
	case <-c.process.Done():
	default:
		return nil
	}
	e := c.process.Exit()
	if e.Signal {
		name := strconv.Itoa(-e.Code)
		return &exitStatus{Signal: &name}
	}
	return &exitStatus{Code: &e.Code}
}

type outputResult struct {
	Output    string      `json:"output"`
	Truncated bool        `json:"truncated"`
	Exit      *exitStatus `json:"exitStatus,omitempty"`
}

func (c *command) output(context.Context) (any, error) {
	exit := c.exit()
	c.mu.Lock()
	defer c.mu.Unlock()
	return outputResult{Output: string(c.tail), Truncated: c.truncated, Exit: exit}, nil
}

// wait waits until the command has ended and all its output was read. It returns how the command ended.
func (c *command) wait(ctx context.Context) (any, error) {
	for _, done := range []<-chan struct{}{c.process.Done(), c.read} {
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return c.exit(), nil
}

func (c *command) kill(context.Context) (any, error) { return struct{}{}, c.stop() }

func (c *command) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace+stopSlack)
	defer cancel()
	return c.process.Stop(ctx, stopGrace)
}

// close stops the command and waits until its output was read.
func (c *command) close() error {
	err := c.stop()
	select {
	case <-c.read:
		return err
	case <-time.After(stopSlack):
		return errors.Join(err, io.ErrNoProgress)
	}
}
