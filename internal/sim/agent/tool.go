package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

type toolRun struct {
	output string
	code   int
}

// toolDrain limits how long runTool waits for more output after a command has ended. A child of the command may still
// have the output open.
const toolDrain = 500 * time.Millisecond

// signalPatience is how long runTool waits after a signal has ended a command. When a runner ends an agent, it sends
// the signal to the agent and to the agent's commands. The wait gives the agent time to handle its own signal. The
// agent then ends without the result of the command, like a real agent.
const signalPatience = time.Second

// runTool runs a shell command in a separate process session, like the real agents. If ctx is done, runTool calls kill
// with the cause. If kill returns true, runTool kills the command. Otherwise the command continues. In both cases,
// runTool returns without the result of the command.
func (p *process) runTool(ctx context.Context, command string, kill func(cause error) bool) (toolRun, error) {
	return p.runToolOrSpare(ctx, command, kill, nil)
}

// runToolOrSpare is like runTool. But if the command continues after ctx is done, it calls spared with a function that
// kills the command.
func (p *process) runToolOrSpare(ctx context.Context, command string, kill func(cause error) bool,
	spared func(kill func())) (toolRun, error) {
	if p.program.Shell != nil {
		return p.runShell(ctx, command, kill, spared)
	}
	var out bytes.Buffer
	cmd := exec.Command(shell(), "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.environ, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = toolDrain
	if err := cmd.Start(); err != nil {
		return toolRun{output: err.Error(), code: 127}, nil
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if endedBySignal(err) {
			select {
			case <-ctx.Done():
				return toolRun{}, context.Cause(ctx)
			case <-time.After(signalPatience):
			}
		}
		return toolRun{output: out.String(), code: exitCode(err)}, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		end := func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-done
		}
		switch {
		case kill(cause):
			end()
		case spared != nil:
			spared(end)
		}
		return toolRun{}, cause
	}
}

// runShell is like runToolOrSpare, but uses Program.Shell.
func (p *process) runShell(ctx context.Context, command string, kill func(cause error) bool,
	spared func(kill func())) (toolRun, error) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan toolRun, 1)
	go func() {
		defer end()
		output, code := p.program.Shell(running, p.dir, command)
		done <- toolRun{output, code}
	}()
	select {
	case run := <-done:
		return run, nil
	case <-ctx.Done():
		switch cause := context.Cause(ctx); {
		case kill(cause):
			end()
			<-done
		case spared != nil:
			spared(end)
		}
		return toolRun{}, context.Cause(ctx)
	}
}

func endedBySignal(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() < 0
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return 127
	case exit.ExitCode() < 0:
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
	}
	return exit.ExitCode()
}

func shell() string {
	if path, err := exec.LookPath("/bin/bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// writeFile writes a file. It creates the directory if necessary.
func (p *process) writeFile(path, text string) error {
	if err := p.life.Err(); err != nil { // a killed agent must not write
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	if p.program.Wrote != nil {
		p.program.Wrote(path, text)
	}
	return nil
}

// abs makes a path absolute. A relative path begins in the working directory.
func (p *process) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(p.dir, path)
}
