package shared

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// resumeWait is how long ductor waits for requests that resume the turns of a run. It then drops the turns that no
// request has resumed.
const resumeWait = time.Minute

// Resume attaches to a run of the previous process of ductor and resumes one of its turns. It returns the value kept
// that Server.Await returned for this turn. All turns of a run share one Process, which ends with the last of them.
// Errors are *cli.Failure.
func (p *Pool[S]) Resume(ctx context.Context, left cli.LeftRun, turn cli.TurnID) (kept any, err error) {
	switch _, begun := left.Mark(turn); {
	case turn == "":
		return nil, cli.Failf(cli.UnknownFailure, p.opts.Agent, "it does not work in the background")
	case !begun:
		return nil, p.nothingLeft()
	}
	p.mu.Lock()
	proc := p.attached[left.Run]
	if proc == nil {
		proc = p.make("", 1) // counts as one session until awaitTurns counts the turns
		proc.run, proc.use.state = left.Run, Attached
		p.attached[left.Run] = proc
		go proc.attach(left)
	}
	p.mu.Unlock()
	if err = proc.wait(ctx, proc.ready); err == nil {
		err = proc.err
	}
	if err != nil {
		return nil, cli.AsFailure(p.opts.Agent, err)
	}
	if kept = proc.claim(turn); kept == nil {
		return nil, p.nothingLeft()
	}
	return kept, nil
}

func (p *base) nothingLeft() error {
	return cli.Failf(cli.UnknownFailure, p.opts.Agent, "nothing is left of this turn")
}

// attach attaches to the run. It reads the output from the start of the oldest turn.
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

// awaitTurns calls Server.Await for each turn of the run. Each turn that requests can resume counts as a session, so
// that the process does not end before the turn does.
func (p *Process) awaitTurns(left cli.LeftRun) {
	all := map[cli.TurnID]awaited{}
	for _, m := range left.Marks {
		if !m.OfTurn() {
			continue
		}
		if kept, drop := p.server.Await(m, left); kept != nil {
			all[m.Turn] = awaited{kept, drop}
		}
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.awaited = all
	p.use.sessions += len(all) - 1
	p.use.running = len(all)
}

// claim removes a turn from the awaited turns, and returns the value that Server.Await returned for it. It returns nil
// if the turn is not awaited.
func (p *Process) claim(turn cli.TurnID) (kept any) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	kept = p.use.awaited[turn].kept
	delete(p.use.awaited, turn)
	return kept
}

// expire drops the turns that no request has resumed in time.
func (p *Process) expire() {
	p.pool.mu.Lock()
	all := p.use.awaited
	p.use.awaited = nil
	p.pool.mu.Unlock()
	for _, turn := range all {
		turn.drop()
		p.TurnEnded(context.Background(), EndOver)
		if err := p.Leave(context.Background(), Unused); err != nil {
			p.pool.opts.Logger.Error("an agent whose turns were not resumed did not end",
				"agent", string(p.pool.opts.Agent),
				"pid", p.prog.PID(), "err", err)
		}
	}
}
