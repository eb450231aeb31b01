package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// State is what becomes of a session that wants to join a process.
type State string

// The states of a process.
const (
	Starting State = "starting" // a session waits until it is ready
	Ready    State = "ready"
	Attached State = "attached" // it takes no session, and ends with those that resume a turn in it
	Draining State = "draining" // it takes no session, and ends with those in it
	Ending   State = "ending"   // it takes no session, and ends with the last turn: what an aborted one started may run
	Detached State = "detached" // it takes no session, and continues without ductor when those in it have left
	Dead     State = "dead"     // it did not start, or its output has ended
)

// stopSlack is what stopping a process may take beyond its grace.
const stopSlack = 10 * time.Second

// Server is what a dialect knows of a process; it embeds the *Process.
type Server interface {
	// Notified, Requested and Changed are those of rpc.Handler. Of the end of the output turns learn from Process.Gone.
	rpc.Handler
	// Greet makes a process that was just started ready for sessions. Its error is why it cannot be used.
	Greet(ctx context.Context) error
	// Await prepares for a turn of the previous process of ductor that may be resumed: from now on it keeps what the agent
	// says of it. kept is for Pool.Resume, and nil where the mark cannot be read; drop undoes it for a turn that no request
	// resumes in time.
	Await(m cli.Mark, left cli.LeftRun) (kept any, drop func())
}

// Process is one process of an agent and the sessions in it. Safe for concurrent use.
type Process struct {
	pool   *base
	key    string
	server Server
	run    cli.RunID // that was attached to; empty for a process that was started here

	lifetime
	connection
	census
}

// lifetime is what begins and ends with a process.
type lifetime struct {
	ready chan struct{} // closed when it is started, or failed to
	life  context.Context
	end   context.CancelFunc
	owned sync.WaitGroup // goroutines
	gone  chan struct{}  // closed when the process has ended, or was detached from
}

// connection is valid once ready is closed, and failure once gone is.
type connection struct {
	err     error // why there is none
	prog    cli.Process
	peer    *rpc.Peer
	failure *cli.Failure
}

// census counts what is in a process, under pool.mu.
type census struct {
	state    State
	givenUp  bool                   // it was draining or ending, before it died
	sessions int                    // that joined, and turns that no request resumed yet
	running  int                    // turns
	awaited  map[cli.TurnID]awaited // turns that no request resumed yet
}

// awaited is what Server.Await gave.
type awaited struct {
	kept any
	drop func()
}

// base is a Pool without the type of its servers.
type base struct {
	opts Options

	mu       sync.Mutex
	open     map[string]*Process    // that take sessions, by key
	attached map[cli.RunID]*Process // that have turns to be resumed
}

// joinable is the process of this key, if it takes sessions or is about to. mu is held.
func (p *base) joinable(key string) *Process {
	proc := p.open[key]
	if proc != nil && proc.state == Ready && proc.exited() {
		return nil
	}
	return proc
}

// Peer talks with the process.
func (p *Process) Peer() *rpc.Peer { return p.peer }

// Program is the operating system's process.
func (p *Process) Program() cli.Process { return p.prog }

// Key is what binds the process: sessions of the same key share it.
func (p *Process) Key() string { return p.key }

// Life is done when the process is to end.
func (p *Process) Life() context.Context { return p.life }

// Gone is closed when the process has ended, or was detached from.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Failure says what the end of the process in the middle of a turn means. It waits until the process is gone.
func (p *Process) Failure() *cli.Failure {
	<-p.gone
	f := *p.failure
	return &f
}

// Go runs f on a goroutine of the process, whose end waits for it.
func (p *Process) Go(f func()) { p.owned.Go(f) }

// Alive says whether the process takes sessions and turns.
func (p *Process) Alive() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.state == Ready && !p.exited()
}

// PID is the number of a process that was ready, while it runs; else 0.
func (p *Process) PID() int {
	if p.exited() {
		return 0
	}
	return p.prog.PID()
}

// exited says whether the program of a process that was ready has ended. Its output may go on for a moment.
func (p *Process) exited() bool {
	select {
	case <-p.prog.Done():
		return true
	default:
		return false
	}
}

// State is the state of the process now.
func (p *Process) State() State {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.state
}

// GivenUp says whether the process was to take no session before it ended, so that what failed in it may succeed in another.
func (p *Process) GivenUp() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.givenUp
}

// Alone says whether one session only is in the process.
func (p *Process) Alone() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.sessions <= 1
}

// prepare has the process started or attached to by f, beside the caller. It ends one that cannot be used.
func (p *Process) prepare(f func(ctx context.Context) error) {
	defer close(p.ready)
	ctx, cancel := context.WithTimeout(p.life, p.pool.opts.StartLimit)
	defer cancel()
	p.err = f(ctx)
	p.pool.mu.Lock()
	switch {
	case p.err == nil && p.state == Starting:
		p.state = Ready
	case p.err == nil:
	default:
		p.become(Dead)
		delete(p.pool.attached, p.run)
	}
	p.pool.mu.Unlock()
	if p.err == nil {
		return
	}
	p.end()
	if p.peer != nil {
		p.err = withCause(p.err, p.halt(context.Background(), p.pool.opts.Grace))
	}
}

// withCause is err, and why it could not be put right.
func withCause(err, more error) error {
	if more == nil {
		return err
	}
	return errors.Join(err, more)
}

// connect makes the peer of a process. The caller has it listen.
func (p *Process) connect(prog cli.Process, o rpc.Options) {
	o.Agent, o.Framing, o.Version, o.Handler = p.pool.opts.Agent, p.pool.opts.Framing, p.pool.opts.Version, handler{p.server, p}
	p.prog, p.peer = prog, rpc.New(prog, o)
}

// handler is the Server, and has the process ended whose output is over.
type handler struct {
	Server
	process *Process
}

func (h handler) Changed(c turn.Change) {
	if c.Ended {
		h.process.ended()
		return
	}
	h.Server.Changed(c)
}

// ended sees to it that a process whose output is over is gone, and says why it is.
func (p *Process) ended() {
	p.pool.mu.Lock()
	detached := p.state == Detached
	if !detached {
		p.become(Dead)
	}
	p.pool.mu.Unlock()
	p.owned.Go(func() {
		defer close(p.gone)
		if detached {
			p.failure = cli.Failf(cli.UnknownFailure, p.pool.opts.Agent, "ductor detached from it")
			p.failure.Cause = cli.ErrDetached
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), p.pool.opts.Grace+stopSlack)
		defer cancel()
		err := p.prog.Stop(ctx, p.pool.opts.Grace)
		p.failure = p.peer.Failure()
		p.failure.Cause = errors.Join(p.failure.Cause, err)
	})
}

// become changes the state to one that takes no session. pool.mu is held.
func (p *Process) become(s State) {
	if p.state != Dead {
		p.state = s
	}
	p.givenUp = p.givenUp || s == Draining || s == Ending
	if p.pool.open[p.key] == p {
		delete(p.pool.open, p.key)
	}
}

// Drain keeps further sessions and turns out. It says whether no other turn than the caller's runs.
func (p *Process) Drain() (alone bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.drain()
	return p.running <= 1
}

// drain is Drain with pool.mu held.
func (p *Process) drain() {
	if p.state == Starting || p.state == Ready || p.state == Attached {
		p.become(Draining)
	}
}

// Stop ends the process with all it started, and waits for its goroutines. Idempotent.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.Drain()
	p.end()
	ready, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	if err := p.wait(ready, p.ready); err != nil || p.err != nil {
		return err
	}
	return p.halt(ctx, grace)
}

func (p *Process) halt(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	return errors.Join(p.peer.Stop(ctx, grace), p.wait(ctx, p.gone), p.await(ctx))
}

// detach detaches from the process, which continues, and waits for its goroutines.
func (p *Process) detach() {
	err := p.peer.Detach()
	p.end()
	ctx, cancel := context.WithTimeout(context.Background(), stopSlack)
	defer cancel()
	if err := errors.Join(err, p.await(ctx)); err != nil {
		p.pool.opts.Logger.Error("detach from an agent", "agent", string(p.pool.opts.Agent), "pid", p.prog.PID(), "err", err)
	}
}

// await waits for the goroutines of the process.
func (p *Process) await(ctx context.Context) error {
	done := make(chan struct{})
	go func() { p.owned.Wait(); close(done) }()
	return p.wait(ctx, done)
}

func (p *Process) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", p.pool.opts.Agent, context.Cause(ctx))
	}
}
