package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"ductor/internal/sim/script"
)

// misbehave performs a step that makes the agent slow or break. It returns false for all other steps. The function
// longLine must return a valid event of about n bytes.
func (p *process) misbehave(ctx context.Context, st script.Step, longLine func(n int) []byte) (bool, error) {
	switch st := st.(type) {
	case script.Sleep:
		return true, sleep(ctx, st.For)
	case script.Hang:
		<-ctx.Done()
		return true, context.Cause(ctx)
	case script.Drop:
		p.out.raw([]byte(`{"type":"stream_ev`))
		fmt.Fprintln(p.stderr, "fatal: connection reset by peer")
		return true, exitError{1}
	case script.Crash:
		said := st.Stderr
		if said == "" {
			said = "panic: scripted crash"
		}
		fmt.Fprintln(p.stderr, said)
		return true, exitError{st.Code}
	case script.Silent:
		return true, exitError{0}
	case script.Garbage:
		p.out.line(garbage(st.Bytes))
		return true, nil
	case script.LongLine:
		p.out.line(longLine(st.Bytes))
		return true, nil
	case script.EndlessLine:
		return true, p.endlessLine(ctx)
	case script.IgnoreTerm:
		p.ignoreTerm()
		return true, nil
	case script.HoldPipe:
		p.holdPipe(st.For)
		return true, nil
	}
	return false, nil
}

func (p *process) ignoreTerm() {
	if p.program.IgnoreTerm != nil {
		p.program.IgnoreTerm()
		return
	}
	signal.Ignore(syscall.SIGTERM)
}

// garbage returns n bytes with changing values. A line feed never occurs.
func garbage(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + 128)
		if b[i] == '\n' {
			b[i] = 0
		}
	}
	return b
}

// endlessLine prints a line that never ends, at about 10 MB a second.
func (p *process) endlessLine(ctx context.Context) error {
	p.out.raw([]byte(`{"type":"`))
	chunk := bytes.Repeat([]byte("endless "), 1<<13)
	for {
		p.out.raw(chunk)
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// holdPipe starts a process that inherits standard output and outlives this process.
func (p *process) holdPipe(d time.Duration) {
	f, ok := p.stdout.(*os.File)
	if !ok {
		fmt.Fprintln(p.stderr, "hold-pipe: standard output is no file")
		return
	}
	cmd := exec.Command("sleep", strconv.FormatFloat(d.Seconds(), 'f', 3, 64))
	cmd.Stdout = f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(p.stderr, "hold-pipe:", err)
		return
	}
	_ = cmd.Process.Release()
}
