package clitest

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// playAbortAway aborts a turn while its environment cannot be reached. Close must return an error, because the turn
// continues.
func playAbortAway(s *stage) {
	s.setGrace(shortGrace)
	far := &farLauncher{}
	d := s.ductor().wrapLauncher(func(l cli.Launcher) cli.Launcher { far.Launcher = l; return far })
	began := s.gate()
	req := s.ask(s.script.Run(began.command()), s.script.Say("never"))
	session := d.open(req)
	p := s.begin(session, req)
	s.awaitFile(began.count)
	far.lose()
	p.cancel(cli.ErrAborted)
	if r := p.end().result; !r.Aborted && (r.Err == nil || r.Err.Kind != cli.NoSandbox) {
		s.t.Errorf("ended as %+v, failure %+v", r, r.Err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), s.h.Patience)
	defer cancel()
	var lost *cli.Failure
	if err := session.Close(ctx); !errors.As(err, &lost) || lost.Kind != cli.NoSandbox {
		s.t.Errorf("what cannot be reached is closed with %v", err)
	}
	if len(s.processes()) == 0 {
		s.t.Error("the agent ended by itself")
	}
	far.end(s)
	_ = session.Close(ctx) // Close may return its first error again
	if left := s.processes(); len(left) > 0 {
		s.t.Errorf("these processes are still there: %v", left)
	}
}

var errAway = &cli.Failure{Kind: cli.NoSandbox, Reason: "its engine cannot be reached"}

// farLauncher starts programs in an environment to which the connection can be lost.
type farLauncher struct {
	cli.Launcher

	mu        sync.Mutex
	lost      bool
	processes []cli.Process
}

func (l *farLauncher) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	process, err := l.Launcher.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.processes = append(l.processes, process)
	l.mu.Unlock()
	p := &farProcess{Process: process, place: l, done: make(chan struct{})}
	p.out, p.said = io.Pipe()
	go func() { // this goroutine ends when the program's output ends
		_, err := io.Copy(p.said, process.Stdout())
		_ = p.said.CloseWithError(err)
	}()
	go func() {
		<-process.Done()
		p.end()
	}()
	return p, nil
}

// lose simulates that the connection is lost. The programs continue.
func (l *farLauncher) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

func (l *farLauncher) end(s *stage) {
	s.t.Helper()
	l.mu.Lock()
	l.lost = false
	all := slices.Clone(l.processes)
	l.mu.Unlock()
	for _, p := range all {
		if err := p.Stop(s.t.Context(), 0); err != nil {
			s.t.Error(err)
		}
	}
}

func (l *farLauncher) away() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return errAway
	}
	return nil
}

type farProcess struct {
	cli.Process
	place *farLauncher
	out   *io.PipeReader
	said  *io.PipeWriter
	once  sync.Once
	done  chan struct{}
}

func (p *farProcess) Stdout() io.Reader     { return p.out }
func (p *farProcess) Done() <-chan struct{} { return p.done }

func (p *farProcess) end() { p.once.Do(func() { close(p.done) }) }

// Stop returns an error if the connection is lost. ductor then receives no more output of the program, even if
// the connection returns.
func (p *farProcess) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.place.away(); err != nil {
		_ = p.said.CloseWithError(err)
		p.end()
		return err
	}
	return p.Process.Stop(ctx, grace)
}

func (p *farProcess) Interrupt() error {
	if err := p.place.away(); err != nil {
		return err
	}
	return p.Process.Interrupt()
}

func (p *farProcess) Stdin() io.WriteCloser { return farInput{p.Process.Stdin(), p.place} }

// farInput drops what is written while the connection is lost.
type farInput struct {
	io.WriteCloser
	place *farLauncher
}

func (i farInput) Write(b []byte) (int, error) {
	if i.place.away() != nil {
		return len(b), nil
	}
	return i.WriteCloser.Write(b)
}

func (i farInput) Close() error {
	if i.place.away() != nil {
		return nil
	}
	return i.WriteCloser.Close()
}
