package shared

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// resumeWait is how long a process that was attached to is kept for turns that no request resumes.
const resumeWait = time.Minute

// Resume gives the process of a run that the previous process of ductor left, and the session in it that has the turn. It
// is attached to once, with the first of its turns. Until they are resumed the dialect keeps what the agent says of them. The
// process serves these turns, and then it ends.
func (p *Pool[S]) Resume(ctx context.Context, left cli.LeftRun, turn cli.TurnID) (s S, err error) {
	p.mu.Lock()
	proc := p.attached[left.Run]
	if proc == nil {
		proc = p.make("", 1) // attach
		proc.run, proc.state = left.Run, Attached
		p.attached[left.Run] = proc
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
		prog, err := p.pool.opts.Launcher.Attach(ctx, left, from)
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
	p.running = len(awaited)
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
		p.TurnEnded(context.Background(), EndOver)
		if err := p.Leave(context.Background(), Unused); err != nil {
			p.pool.opts.Logger.Error("an agent whose turns were not resumed did not end", "agent", string(p.pool.opts.Agent),
				"pid", p.prog.PID(), "err", err)
		}
	}
}
