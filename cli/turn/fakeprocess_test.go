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

// fakeProcess is a program played by a test: print writes its output, die ends it.
type fakeProcess struct {
	outR *io.PipeReader
	outW *io.PipeWriter
	inR  *io.PipeReader
	inW  *io.PipeWriter

	past   []byte                // printed before it was attached to
	piece  int                   // how much of that is read at once; 0 is all
	slow   time.Duration         // how long each such read takes
	losses []*cli.LostOutput     // what Stdout gives, one for each lose
	when   func(int64) time.Time // nil knows nothing
	begun  func(cli.Mark) error  // nil takes every mark
	obeys  time.Duration         // how long it takes to die of SIGTERM; longer than the grace means it is killed
	stderr string

	mu    sync.Mutex
	stops []time.Duration // the graces Stop was called with
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

// print writes lines to standard output; it returns once they are read.
func (p *fakeProcess) print(lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(p.outW, l+"\n") // fails when the process is dead: nobody hears it then
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

// Detach lets go of both pipes; the program itself lives on.
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

// fakeOutput is what a fakeProcess printed in the past, and what it prints now.
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
	if i := bytes.IndexByte(b[:n], 0); i >= 0 { // where something is lost; nothing follows in this read
		lost := o.p.losses[0]
		o.p.losses = o.p.losses[1:]
		return i, lost
	}
	if errors.Is(err, io.ErrClosedPipe) && o.p.isDetached() {
		err = cli.ErrDetached
	}
	return n, err
}

// lose makes Stdout give the next of losses.
func (p *fakeProcess) lose() { _, _ = p.outW.Write([]byte{0}) }
