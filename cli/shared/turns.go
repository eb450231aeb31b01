package shared

import (
	"context"
	"time"

	"ductor/cli"
)

// TurnEnd is how a turn ended, as far as its process is concerned.
type TurnEnd string

// The ways a turn ends.
const (
	EndOver      TurnEnd = "over"      // nothing of it runs
	EndUnclear   TurnEnd = "unclear"   // something of it may run
	EndLeftovers TurnEnd = "leftovers" // what its tools started may run, and cannot be told from what those of others did
	EndDetached  TurnEnd = "detached"  // it continues without ductor, and so does the process
)

// TurnStarted counts one more turn, before the agent is asked for it. A turn that is resumed is counted already. It says
// false where the process ends before long: the turn is better asked for in another.
func (p *Process) TurnStarted() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.running++
	p.active++
	return p.state == Ready
}

// TurnEnded counts a turn out. It returns when a process that ends with its last turn has ended.
func (p *Process) TurnEnded(ctx context.Context, end TurnEnd) {
	if !p.count(end) {
		return
	}
	if err := p.Stop(context.WithoutCancel(ctx), p.pool.opts.Grace); err != nil {
		p.pool.opts.Logger.Error("an agent with what an aborted turn started did not end", "agent", string(p.pool.opts.Agent), "err", err)
	}
}

// count counts a turn out, and says whether the process is to be stopped now.
func (p *Process) count(end TurnEnd) (stop bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.running--
	switch {
	case end == EndOver:
		p.cleared()
	case end == EndDetached && p.state != Dead:
		p.become(Detached)
	case end == EndLeftovers && p.state != Ending && p.state != Dead:
		if p.state != Detached {
			p.become(Ending)
		}
		if p.running > 0 || p.state == Detached { // the next process ends it all the same
			p.mark(cli.Mark{Turn: cli.SpoilMark})
		}
	}
	return p.state == Ending && p.running == 0
}

// Cleared says that nothing is left any more of a turn that ended as EndUnclear.
func (p *Process) Cleared() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.cleared()
}

// cleared decrements the count of active turns and, at zero, persists idle. A turn that is counted later is asked for after
// that record. pool.mu is held.
func (p *Process) cleared() {
	p.active--
	if p.active == 0 && p.state == Ready {
		p.mark(cli.Mark{Turn: cli.RestMark, Note: p.server.IdleNote()})
	}
}

func (p *Process) mark(m cli.Mark) {
	p.peer.Mark(m, func(err error) {
		p.pool.opts.Logger.Debug("record the state of an agent", "agent", string(p.pool.opts.Agent), "pid", p.prog.PID(),
			"state", string(m.Turn), "err", err)
	})
}

// StopAlone keeps further sessions and turns out, and stops the process unless turns of others run in it: it ends with the
// last of them then.
func (p *Process) StopAlone(ctx context.Context, grace time.Duration) error {
	if !p.Drain() {
		return nil
	}
	return p.Stop(ctx, grace)
}
