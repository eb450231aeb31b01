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

// stopSlack is the time that stopping a process may take in addition to its grace period.
const stopSlack = 10 * time.Second

// Server is the part of a process that the provider implements. An implementation embeds the *Process.
type Server interface {
	// Process does not report the end of the output to Handler.Changed, because turns learn of this end from
	// Process.Gone.
	rpc.Handler
	// Greet prepares a new process for sessions. If it returns an error, the process is not used.
	Greet(ctx context.Context) error
	// Await prepares the Server to resume a turn of the previous process of ductor. m is the turn's mark. From now on,
	// the Server stores the agent's messages for this turn. Pool.Resume returns kept. kept is nil if the mark is
	// invalid. The pool calls drop if no request resumes the turn in time.
	Await(m cli.Mark, left cli.LeftRun) (kept any, drop func())
}

// Process is a process of an agent that sessions share. Safe for concurrent use.
type Process struct {
	pool   *base
	key    string
	server Server
	run    cli.RunID // the run that ductor attached to; empty for a new process

	ready chan struct{} // closed when the process has started or failed to start
	life  lifetime

	err  error // why starting or attaching failed
	prog cli.Process
	peer *rpc.Peer

	use occupancy // pool.mu guards it
}

// lifetime tracks the end of a process and of its goroutines.
type lifetime struct {
	ctx     context.Context
	end     context.CancelFunc
	owned   sync.WaitGroup // goroutines of the process
	gone    chan struct{}  // closed when the process has ended, or ductor detached from it
	failure *cli.Failure   // valid after the channel gone was closed
}

// base is the part of a Pool that does not depend on the type of its Servers.
type base struct {
	opts Options

	mu       sync.Mutex
	open     map[string]*Process    // processes that sessions may join, by key
	attached map[cli.RunID]*Process // processes with turns to resume
}

// joinable returns the process with this key if it is ready or starting. The caller holds mu.
func (p *base) joinable(key string) *Process {
	proc := p.open[key]
	if proc != nil && proc.use.state == Ready && proc.exited() {
		return nil
	}
	return proc
}

// Peer returns the connection to the agent.
func (p *Process) Peer() *rpc.Peer { return p.peer }

// Program returns the underlying cli.Process.
func (p *Process) Program() cli.Process { return p.prog }

// Key returns the key with which sessions join the process.
func (p *Process) Key() string { return p.key }

// Life returns a context that is cancelled when the process should end.
func (p *Process) Life() context.Context { return p.life.ctx }

// Gone returns a channel that is closed when the process has ended, or ductor has detached from it.
func (p *Process) Gone() <-chan struct{} { return p.life.gone }

// Failure returns the failure of a turn during which the process ended. It waits until the process has ended.
func (p *Process) Failure() *cli.Failure {
	<-p.life.gone
	f := *p.life.failure
	return &f
}

// Go runs f on a goroutine. Stop waits for the goroutine.
func (p *Process) Go(f func()) { p.life.owned.Go(f) }

// Alive reports whether sessions and turns may use the process.
func (p *Process) Alive() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.use.state == Ready && !p.exited()
}

// PID returns the PID, or 0 if the program has exited. The process must have been ready.
func (p *Process) PID() int {
	if p.exited() {
		return 0
	}
	return p.prog.PID()
}

// exited reports whether the program has exited. Some of its output may not have been read yet. The process must have
// been ready.
func (p *Process) exited() bool {
	select {
	case <-p.prog.Done():
		return true
	default:
		return false
	}
}

// State returns the current state of the process.
func (p *Process) State() State {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.use.state
}

// GivenUp reports whether the process stopped accepting sessions before it ended. A request that the process rejected
// for this reason may succeed in another process.
func (p *Process) GivenUp() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.use.givenUp
}

// Alone reports whether the process has only one session.
func (p *Process) Alone() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.use.sessions <= 1
}

// prepare makes the process ready with f, which starts the program or attaches to it. If f fails, prepare ends the
// process.
func (p *Process) prepare(f func(ctx context.Context) error) {
	defer close(p.ready)
	ctx, cancel := context.WithTimeout(p.life.ctx, p.pool.opts.Start)
	defer cancel()
	p.err = f(ctx)
	p.pool.mu.Lock()
	switch {
	case p.err == nil && p.use.state == Starting:
		p.use.state = Ready
	case p.err == nil:
	default:
		p.become(Dead)
		delete(p.pool.attached, p.run)
	}
	p.pool.mu.Unlock()
	if p.err == nil {
		return
	}
	p.life.end()
	if p.peer != nil {
		p.err = withCause(p.err, p.halt(context.Background(), p.pool.opts.Grace))
	}
}

func withCause(err, cleanupErr error) error {
	if cleanupErr == nil {
		return err
	}
	return errors.Join(err, cleanupErr)
}

// connect creates the connection to the agent. The caller then starts to read from the connection.
func (p *Process) connect(prog cli.Process, o rpc.Options) {
	o.Agent, o.Framing, o.Codec = p.pool.opts.Agent, p.pool.opts.Framing, p.pool.opts.Codec
	o.Handler, o.Cancels = handler{p.server, p}, p.pool.opts.Cancels
	p.prog, p.peer = prog, rpc.New(prog, o)
}

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

// ended stops the program after the end of its output, and records why the process ended.
func (p *Process) ended() {
	p.pool.mu.Lock()
	detached := p.use.state == Detached
	if !detached {
		p.become(Dead)
	}
	p.pool.mu.Unlock()
	p.Go(func() {
		defer close(p.life.gone)
		if detached {
			p.life.failure = cli.Failf(cli.UnknownFailure, p.pool.opts.Agent, "ductor detached from it")
			p.life.failure.Cause = cli.ErrDetached
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), p.pool.opts.Grace+stopSlack)
		defer cancel()
		err := p.prog.Stop(ctx, p.pool.opts.Grace)
		p.life.failure = p.peer.Failure()
		p.life.failure.Cause = errors.Join(p.life.failure.Cause, err)
	})
}

func (p *Process) become(s State) {
	p.use.become(s)
	if p.pool.open[p.key] == p {
		delete(p.pool.open, p.key)
	}
}

// Drain makes the process accept no more sessions and turns. It reports whether at most one turn is running.
func (p *Process) Drain() (alone bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.drain()
	return p.use.running <= 1
}

func (p *Process) drain() {
	switch p.use.state {
	case Starting, Ready, Attached:
		p.become(Draining)
	}
}

// Stop ends the process with all its descendants, and waits for its goroutines. Idempotent.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.Drain()
	p.life.end()
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
	return errors.Join(p.peer.Stop(ctx, grace), p.wait(ctx, p.life.gone), p.await(ctx))
}

// detach detaches from the program, which continues, and waits for the goroutines of the process.
func (p *Process) detach() {
	err := p.peer.Detach()
	p.life.end()
	ctx, cancel := context.WithTimeout(context.Background(), stopSlack)
	defer cancel()
	if err := errors.Join(err, p.await(ctx)); err != nil {
		p.pool.opts.Logger.Error("detach from an agent", "agent", string(p.pool.opts.Agent), "pid", p.prog.PID(),
			"err", err)
	}
}

func (p *Process) await(ctx context.Context) error {
	done := make(chan struct{})
	go func() { p.life.owned.Wait(); close(done) }()
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
