package turn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"ductor/cli"
)

// fakeProcess is a program that a test controls: print writes its output, die ends it.
type fakeProcess struct {
	outR *io.PipeReader
	outW *io.PipeWriter
	inR  *io.PipeReader
	inW  *io.PipeWriter

	past   []byte                // printed before ductor attached
	piece  int                   // bytes of past in one read; 0 is all
	slow   time.Duration         // duration of each such read
	losses []*cli.LostOutput     // returned by Stdout, one for each call of lose
	when   func(int64) time.Time // nil means that times are unknown
	begun  func(cli.Mark) error  // nil accepts every mark
	obeys  time.Duration         // time until it dies of SIGTERM; longer than the grace means that it is killed
	stderr string

	mu    sync.Mutex
	stops []time.Duration // the graces of the calls of Stop
	marks []cli.Mark
	exit  cli.ExitStatus
	done  chan struct{}

	detached chan struct{}
}

func newFakeProcess() *fakeProcess {
	p := &fakeProcess{done: make(chan struct{}), detached: make(chan struct{})}
	p.outR, p.outW = io.Pipe()
	p.inR, p.inW = io.Pipe()
	return p
}

// print writes lines to standard output and returns once they are read.
func (p *fakeProcess) print(lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(p.outW, l+"\n") // fails if the process is dead, and then nobody reads it
	}
}

func (p *fakeProcess) die(exit cli.ExitStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return
	default:
	}
	p.exit = exit
	close(p.done)
	_ = p.outW.Close()
	_ = p.inR.Close()
}

func (p *fakeProcess) PID() int              { return 42 }
func (p *fakeProcess) Stdin() io.WriteCloser { return p.inW }
func (p *fakeProcess) Stdout() io.Reader     { return fakeOutput{p} }
func (p *fakeProcess) Run() cli.RunID        { return "run" }
func (p *fakeProcess) StderrTail() string    { return p.stderr }
func (p *fakeProcess) Interrupt() error      { return nil }
func (p *fakeProcess) Done() <-chan struct{} { return p.done }
func (p *fakeProcess) Exit() cli.ExitStatus  { return p.exit }

func (p *fakeProcess) Stop(_ context.Context, grace time.Duration) error {
	p.mu.Lock()
	p.stops = append(p.stops, grace)
	p.mu.Unlock()
	select {
	case <-p.done:
		return nil
	case <-time.After(min(p.obeys, grace)):
	}
	if p.obeys > grace {
		p.die(cli.ExitStatus{Code: -9, Signal: true})
	} else {
		p.die(cli.ExitStatus{Code: -15, Signal: true})
	}
	return nil
}

func (p *fakeProcess) When(offset int64) time.Time {
	if p.when == nil {
		return time.Time{}
	}
	return p.when(offset)
}

func (p *fakeProcess) Ended(int64) {}

func (p *fakeProcess) Begin(_ context.Context, m cli.Mark) error {
	if p.begun != nil {
		if err := p.begun(m); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks = append(p.marks, m)
	return nil
}

// Detach releases both pipes; the program itself lives on.
func (p *fakeProcess) Detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.detached:
		return
	default:
	}
	close(p.detached)
	_ = p.outR.CloseWithError(cli.ErrDetached)
	_ = p.inW.CloseWithError(cli.ErrDetached)
}

func (p *fakeProcess) isDetached() bool {
	select {
	case <-p.detached:
		return true
	default:
		return false
	}
}

// fakeOutput is the past and current output of a fakeProcess.
type fakeOutput struct{ p *fakeProcess }

func (o fakeOutput) Read(b []byte) (int, error) {
	if len(o.p.past) > 0 {
		time.Sleep(o.p.slow)
		if o.p.piece > 0 {
			b = b[:min(len(b), o.p.piece)]
		}
		n := copy(b, o.p.past)
		o.p.past = o.p.past[n:]
		return n, nil
	}
	n, err := o.p.outR.Read(b)
	if i := bytes.IndexByte(b[:n], 0); i >= 0 { // the position of a loss; this read ends there
		lost := o.p.losses[0]
		o.p.losses = o.p.losses[1:]
		return i, lost
	}
	if errors.Is(err, io.ErrClosedPipe) && o.p.isDetached() {
		err = cli.ErrDetached
	}
	return n, err
}

// lose makes Stdout return the next of losses.
func (p *fakeProcess) lose() { _, _ = p.outW.Write([]byte{0}) }
