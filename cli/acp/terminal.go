package acp

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ductor/cli"
)

const (
	terminalKept  = 1 << 20          // maximum and default size of the stored output, in bytes
	stopSlack     = 10 * time.Second // how much longer than its grace period the stop of a command may take
	terminalGrace = 500 * time.Millisecond
)

// terminal is a command that ductor runs for an agent. The protocol calls it a terminal.
type terminal struct {
	process cli.Process
	read    chan struct{} // closed after all output was read

	mu        sync.Mutex
	limit     int
	output    []byte // the end of the output, up to limit bytes
	truncated bool
}

// pump reads the command's output until the command ends, and then calls ended.
func (t *terminal) pump(ended func(cli.ToolEnded)) {
	defer close(t.read)
	buf := make([]byte, 16<<10)
	for {
		n, err := t.process.Stdout().Read(buf)
		t.keep(buf[:n])
		var lost *cli.LostOutput
		if err != nil && !errors.As(err, &lost) { // io.EOF, or the command was stopped
			break
		}
	}
	<-t.process.Done()
	code := t.process.Exit().Code
	if code < 0 { // report a signal as shells do
		code = 128 - code
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ended(cli.ToolEnded{Output: strings.ToValidUTF8(string(t.output), "\uFFFD"), ExitCode: &code})
}

// keep appends data to the stored output. It drops the beginning of the output beyond the limit, at a character
// boundary.
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

// exit returns how the command ended, or nil while the command runs.
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

type outputResult struct {
	Output    string      `json:"output"`
	Truncated bool        `json:"truncated"`
	Exit      *exitStatus `json:"exitStatus,omitempty"`
}

func (t *terminal) said(context.Context) (any, error) {
	exit := t.exit()
	t.mu.Lock()
	defer t.mu.Unlock()
	return outputResult{Output: string(t.output), Truncated: t.truncated, Exit: exit}, nil
}

// wait waits until the command has ended and all its output was read. It returns how the command ended.
func (t *terminal) wait(ctx context.Context) (any, error) {
	for _, done := range []<-chan struct{}{t.process.Done(), t.read} {
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return t.exit(), nil
}

func (t *terminal) kill(context.Context) (any, error) { return none{}, t.stop() }

func (t *terminal) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), terminalGrace+stopSlack)
	defer cancel()
	return t.process.Stop(ctx, terminalGrace)
}

// close stops the command and waits until its output was read.
func (t *terminal) close() error {
	err := t.stop()
	select {
	case <-t.read:
		return err
	case <-time.After(stopSlack):
		return errors.Join(err, io.ErrNoProgress)
	}
}
