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
	terminalKept  = 1 << 20          // bytes of stored output, at most and by default
	stopSlack     = 10 * time.Second // how long stopping a command may take after its grace
	terminalGrace = 500 * time.Millisecond
)

// terminal is a command that runs for an agent.
type terminal struct {
	process cli.Process
	read    chan struct{} // closed when all its output was read

	mu        sync.Mutex
	limit     int
	output    []byte // its end
	truncated bool
}

// pump reads the output. It calls ended when the command has ended.
func (t *terminal) pump(ended func(cli.ToolEnded)) {
	defer close(t.read)
	buf := make([]byte, 16<<10)
	for {
		n, err := t.process.Stdout().Read(buf)
		t.keep(buf[:n])
		var lost *cli.LostOutput
		if err != nil && !errors.As(err, &lost) { // io.EOF, or the terminal was closed
			break
		}
	}
	<-t.process.Done()
	code := t.process.Exit().Code
	if code < 0 { // as shells report a signal
		code = 128 - code
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ended(cli.ToolEnded{Output: strings.ToValidUTF8(string(t.output), "\uFFFD"), ExitCode: &code})
}

// keep appends output. If there is too much, it drops the start, up to a character boundary.
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

// exit returns how the command ended, or nil while it runs.
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

// wait returns how the command ended, once all its output was read.
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
