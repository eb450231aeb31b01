package shared

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// resumeWait is how long a process that was attached to is kept for turns that no request resumes.
const resumeWait = time.Minute

// Resume gives the process of a run that the previous process of ductor left, and the session in it that has the turn. It
// is attached to once, with the first of its turns. Until they are resumed the dialect keeps what the agent says of them.
func (p *Pool[S]) Resume(ctx context.Context, left cli.LeftRun, turn cli.TurnID) (s S, err error) {
	p.mu.Lock()
	proc := p.attached[left.Run]
	if proc == nil {
		proc = p.make(left.Setting, 1) // attach
		proc.run = left.Run
		p.attached[left.Run] = proc
		if p.joinable(left.Setting) == nil {
			p.open[left.Setting] = proc // conversations that are idle in it go on in it
		}
		go proc.attach(left)
	}
	p.mu.Unlock()
	if err := proc.wait(ctx, proc.ready); err != nil {
		return s, err
	}
	if proc.err != nil {
		return s, proc.err
	}
	if !proc.claim(turn) {
		return s, cli.Failf(cli.UnknownFailure, p.opts.Agent, "nothing is left of this turn")
	}
	return proc.server.(S), nil
}

// attach attaches at the oldest turn.
func (p *Process) attach(left cli.LeftRun) {
	p.prepare(func(ctx context.Context) error {
		from := left.OutputEnd
		for _, m := range left.Marks {
			from = min(from, m.Output)
		}
		prog, err := p.pool.opts.Launcher.Attach(ctx, left.Run, from)
		if err != nil {
			f := cli.Failf(cli.UnknownFailure, p.pool.opts.Agent, "what is left of the turn cannot be read")
			f.Cause = err
			return f
		}
		p.connect(prog, rpc.Options{From: from, Past: true, Until: left.OutputEnd})
		p.awaitTurns(left)
		p.peer.Listen()
		time.AfterFunc(resumeWait, p.expire)
		return nil
	})
}

// awaitTurns counts a session for each turn that may be resumed.
func (p *Process) awaitTurns(left cli.LeftRun) {
	awaited := map[cli.TurnID]func(){}
	for _, m := range left.Marks {
		if !m.OfTurn() {
			continue
		}
		if drop, ok := p.server.Await(m, left); ok {
			awaited[m.Turn] = drop
		}
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.awaited = awaited
	p.sessions += len(awaited) - 1
	p.running, p.active = len(awaited), len(awaited)
	if slices.ContainsFunc(left.Marks, func(m cli.Mark) bool { return m.Turn == cli.SpoilMark }) {
		p.become(Ending)
	}
}

// claim takes a turn out of those that are awaited; false if it is not among them.
func (p *Process) claim(turn cli.TurnID) bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	_, ok := p.awaited[turn]
	delete(p.awaited, turn)
	return ok
}

// expire gives up the turns that no request resumed in time.
func (p *Process) expire() {
	p.pool.mu.Lock()
	awaited := p.awaited
	p.awaited = nil
	p.pool.mu.Unlock()
	for _, drop := range awaited {
		drop()
		p.TurnEnded(context.Background(), EndUnclear)
		if err := p.Leave(context.Background(), Unused); err != nil {
			p.pool.opts.Logger.Error("an agent whose turns were not resumed did not end", "agent", string(p.pool.opts.Agent),
				"pid", p.prog.PID(), "err", err)
		}
	}
}

// Keep takes over an idle process of the previous process of ductor, with one session in it, and has inherit look whether
// it can be used; see cli.Keeper. Until it returns, whoever joins the process waits.
func (p *Pool[S]) Keep(ctx context.Context, left cli.LeftRun, inherit func(ctx context.Context, s S) error) (cli.Kept, error) {
	p.mu.Lock()
	if p.joinable(left.Setting) != nil {
		p.mu.Unlock()
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, p.opts.Agent, "another one took its place")
	}
	proc := p.make(left.Setting, 1)
	proc.run = left.Run
	p.open[left.Setting] = proc
	p.mu.Unlock()
	go proc.inherit(left, func(ctx context.Context) error { return inherit(ctx, proc.server.(S)) })
	if _, err := p.joined(ctx, proc); err != nil {
		return cli.Kept{}, err
	}
	return cli.Kept{
		PID: proc.prog.PID(), Alive: proc.Alive,
		Close:  func(ctx context.Context) error { return proc.Leave(ctx, Closed) },
		Detach: func() { _ = proc.Leave(context.Background(), Detaches) }, // detaching has no error
	}, nil
}

// inherit attaches at the end of what the process said.
func (p *Process) inherit(left cli.LeftRun, check func(ctx context.Context) error) {
	p.prepare(func(ctx context.Context) error {
		prog, err := p.pool.opts.Launcher.Attach(ctx, left.Run, left.OutputEnd)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotKept, cli.StartFailure(p.pool.opts.Agent, err))
		}
		p.connect(prog, rpc.Options{From: left.OutputEnd})
		p.peer.Listen()
		if err := check(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNotKept, err)
		}
		return nil
	})
}
