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

// Main runs a scripted agent and returns its exit code. args begins with the name of the agent. Main handles signals.
// The caller must exit after Main returns, to end everything that the agent has started.
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

// Program is a scripted agent that runs inside another process.
type Program struct {
	Args           []string // arguments, beginning with the name of the agent
	Env            []string
	Dir            string // working directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal

	// The agent calls IgnoreTerm when its script contains the directive ignore-term. If IgnoreTerm is nil, the agent
	// makes its process ignore SIGTERM.
	IgnoreTerm func()
	// Shell runs a shell command of a tool until the command ends or ctx is done. If Shell is nil, the agent uses a
	// shell on this machine.
	Shell func(ctx context.Context, dir, command string) (output string, code int)
	// The agent calls Heard when it starts to answer a prompt, and Wrote when it has written a file. Both may be nil.
	Heard func(prompt string)
	Wrote func(path, text string)
	// The agent calls Asked when the client has answered a request for permission. The parameter what is the command,
	// or the text to write. Asked may be nil.
	Asked func(what string, allowed bool)
	// The agent calls Ended when a turn has succeeded and its answer is printed. Ended may be nil.
	Ended func(prompt string)
}

// Run runs the agent until it ends and returns its exit code. The caller must then cancel ctx, which ends everything
// that the agent has started. If ctx is cancelled earlier, the agent is killed.
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

type process struct {
	stdin   io.Reader
	stdout  io.Writer // unbuffered; may be a file
	out     *lines
	stderr  io.Writer
	env     map[string]string
	environ []string
	dir     string
	store   store
	signals <-chan os.Signal
	life    context.Context // cancelled when the agent ends
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

func (p *process) asked(what string, allowed bool) {
	if p.program.Asked != nil && p.life.Err() == nil {
		p.program.Asked(what, allowed)
	}
}

// ended calls Program.Ended if the turn succeeded.
func (p *process) ended(prompt string, err error) {
	if err == nil && p.program.Ended != nil && p.life.Err() == nil {
		p.program.Ended(newestText(prompt))
	}
}

func (p *process) fail(code int, message string) int {
	fmt.Fprintln(p.stderr, message)
	return code
}

// exitError is the error of a turn that ends the process.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// errInterrupted is the cause of the context of a turn that the user has interrupted.
var errInterrupted = errors.New("interrupted")

// sleep waits until the time has passed or ctx is done.
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
