package cli

import (
	"context"
	"io"
	"sync"
	"time"
)

// fakeProcess is a program played by a test: print writes its output, die ends it.
type fakeProcess struct {
	outR *io.PipeReader
	outW *io.PipeWriter
	inR  *io.PipeReader
	inW  *io.PipeWriter

	obeys  time.Duration // how long it takes to die of SIGTERM; longer than the grace means it is killed
	stderr string

	mu    sync.Mutex
	stops []time.Duration // the graces Stop was called with
	exit  ExitStatus
	done  chan struct{}
}

func newFakeProcess() *fakeProcess {
	p := &fakeProcess{done: make(chan struct{})}
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

func (p *fakeProcess) die(exit ExitStatus) {
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
func (p *fakeProcess) Stdout() io.Reader     { return p.outR }
func (p *fakeProcess) StderrTail() string    { return p.stderr }
func (p *fakeProcess) Interrupt() error      { return nil }
func (p *fakeProcess) Done() <-chan struct{} { return p.done }
func (p *fakeProcess) Exit() ExitStatus      { return p.exit }

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
		p.die(ExitStatus{Code: -9, Signal: true})
	} else {
		p.die(ExitStatus{Code: -15, Signal: true})
	}
	return nil
}
