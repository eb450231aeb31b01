package shared

import (
	"cmp"
	"context"

	"ductor/cli"
	"ductor/cli/rpc"
)

// Pool contains the processes of one provider. One lock guards the states of all processes. No method holds the lock
// while it waits for something else. Safe for concurrent use.
type Pool[S Server] struct {
	base
	server func(*Process) S
}

// NewPool creates a Pool. It calls server for each process, before the process starts.
func NewPool[S Server](o Options, server func(*Process) S) *Pool[S] {
	o.Start = cmp.Or(o.Start, DefaultStartLimit)
	return &Pool[S]{base: base{opts: o, open: map[string]*Process{}, attached: map[cli.RunID]*Process{}},
		server: server}
}

// make creates a Process that already counts the given number of sessions. It does not start the Process.
func (p *Pool[S]) make(key string, sessions int) *Process {
	proc := &Process{pool: &p.base, key: key, ready: make(chan struct{}),
		use: occupancy{state: Starting, sessions: sessions}}
	proc.life.gone = make(chan struct{})
	proc.life.ctx, proc.life.end = context.WithCancel(context.Background())
	proc.server = p.server(proc)
	return proc
}

// Join adds a session to the process with this key. If sessions cannot join such a process, Join starts a new one with
// command.
func (p *Pool[S]) Join(ctx context.Context, key string, command cli.Command) (S, error) {
	for {
		proc, mine := p.reserve(key)
		if mine {
			go proc.start(command)
		}
		s, err := p.joined(ctx, proc)
		if err != nil || mine || proc.Alive() {
			return s, err
		}
		// The process has ended or is about to end. The code that ends it reports errors.
		_ = proc.Leave(context.WithoutCancel(ctx), Unused)
	}
}

// reserve adds a session to the process with this key. If sessions cannot join such a process, reserve creates a
// process and returns true. The caller must start the new process.
func (p *Pool[S]) reserve(key string) (proc *Process, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if proc := p.joinable(key); proc != nil {
		proc.use.sessions++
		return proc, false
	}
	p.open[key] = p.make(key, 1)
	return p.open[key], true
}

// joined waits until the process is ready, and returns its Server. The process already counts the session. If joined
// fails, it removes the session from the process.
func (p *Pool[S]) joined(ctx context.Context, proc *Process) (s S, err error) {
	if err = proc.wait(ctx, proc.ready); err == nil {
		err = proc.err
	}
	if err != nil {
		return s, withCause(err, proc.Leave(context.WithoutCancel(ctx), Unused))
	}
	return proc.server.(S), nil
}

// start starts the program, and prepares it with Server.Greet.
func (p *Process) start(command cli.Command) {
	p.prepare(func(ctx context.Context) error {
		prog, err := p.pool.opts.Launcher.Start(ctx, command)
		if err != nil {
			return cli.StartFailure(p.pool.opts.Agent, err)
		}
		p.connect(prog, rpc.Options{})
		p.peer.Listen()
		return p.server.Greet(ctx)
	})
}

// Private starts a process for one session. Other sessions cannot join it.
func (p *Pool[S]) Private(ctx context.Context, command cli.Command) (S, error) {
	proc := p.make("", 1)
	go proc.start(command)
	return p.joined(ctx, proc)
}

// Running adds a session to the process with this key. It returns false if there is no such process, or if it is not
// ready.
func (p *Pool[S]) Running(key string) (s S, ok bool) {
	p.mu.Lock()
	proc := p.joinable(key)
	if ok = proc != nil && proc.use.state == Ready; ok {
		proc.use.sessions++
	}
	p.mu.Unlock()
	if !ok {
		return s, false
	}
	return proc.server.(S), true
}

// PID returns the PID of the process with this key, or 0 if sessions cannot join such a process now.
func (p *Pool[S]) PID(key string) int {
	p.mu.Lock()
	proc := p.open[key]
	p.mu.Unlock()
	if proc == nil || !proc.Alive() {
		return 0
	}
	return proc.prog.PID()
}
