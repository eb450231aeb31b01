package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Main runs the program and returns its exit code. The first argument is the agent's name. Main handles signals. The
// caller must then exit, which ends everything that still runs.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	return Program{Args: args, Env: env, Dir: dir, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Signals: signals}.Run(context.Background())
}

// Program is a scripted agent inside a process that has other work too.
type Program struct {
	Args           []string // arguments, starting with the agent's name
	Env            []string
	Dir            string // working directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal

	// IgnoreTerm is called by a script that ignores SIGTERM. If it is nil, the process ignores the signal.
	IgnoreTerm func()
	// Shell runs a command of a tool until ctx ends. If it is nil, a shell of this machine runs it.
	Shell func(ctx context.Context, dir, command string) (output string, code int)
	// Heard is called with each prompt that the agent starts, and Wrote for each file that it wrote. Both may be nil.
	Heard func(prompt string)
	Wrote func(path, text string)
	// Asked is called with each answer to a request to run a command or to write a text. It may be nil.
	Asked func(what string, allowed bool)
	// Ended is called with each prompt whose turn succeeded, after the answer is printed. It may be nil.
	Ended func(prompt string)
}

// Run runs the program to its end and returns its exit code. The caller must then cancel ctx, which ends everything
// that the program started. Cancelling ctx earlier kills the program.
func (o Program) Run(ctx context.Context) int {
	p, args := newProcess(ctx, o), o.Args
	if len(args) == 0 {
		return p.fail(2, "usage: claude|codex|gemini|copilot|plain ARGS…")
	}
	switch args[0] {
	case Claude:
		return p.claude(args[1:])
	case Codex:
		return p.codex(args[1:])
	case Gemini:
		return p.gemini(args[1:])
	case Copilot:
		return p.copilot(args[1:])
	case Plain:
		return p.plain()
	}
	return p.fail(2, "no scripted agent is called "+args[0])
}

// process is one run of the program.
type process struct {
	stdin   io.Reader
	stdout  io.Writer // the unbuffered writer, which may be a file
	out     *lines
	stderr  io.Writer
	env     map[string]string
	environ []string
	dir     string
	store   store
	signals <-chan os.Signal
	life    context.Context // ends with the process
	program Program
}

func newProcess(life context.Context, o Program) *process {
	vars := make(map[string]string, len(o.Env))
	for _, kv := range o.Env {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	home := vars[homeVar]
	if home == "" {
		home = vars["HOME"] + "/.ductor-sim"
	}
	return &process{
		stdin: o.Stdin, stdout: o.Stdout, out: &lines{w: o.Stdout}, stderr: o.Stderr,
		env: vars, environ: o.Env, dir: o.Dir, store: store{root: home},
		signals: o.Signals, life: life, program: o,
	}
}

// asked passes an answer to Program.Asked.
func (p *process) asked(what string, allowed bool) {
	if p.program.Asked != nil && p.life.Err() == nil {
		p.program.Asked(what, allowed)
	}
}

// ended reports a successful turn to Program.Ended.
func (p *process) ended(prompt string, err error) {
	if err == nil && p.program.Ended != nil && p.life.Err() == nil {
		p.program.Ended(newestText(prompt))
	}
}

// fail prints message to standard error and returns code.
func (p *process) fail(code int, message string) int {
	fmt.Fprintln(p.stderr, message)
	return code
}

// exitError ends the process from within a turn.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// errInterrupted is the cause in the context of a turn that the user interrupted.
var errInterrupted = errors.New("interrupted")

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
