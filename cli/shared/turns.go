package shared

import (
	"context"
	"time"
)

// TurnEnd is how a turn ended, as far as its process is concerned.
type TurnEnd string

// The ways a turn ends.
const (
	EndOver      TurnEnd = "over"
	EndLeftovers TurnEnd = "leftovers" // what its tools started may run, and cannot be told from what those of others did
	EndDetached  TurnEnd = "detached"  // it continues without ductor, and so does the process
)

// TurnStarted counts one more turn, before the agent is asked for it. A turn that is resumed is counted already. It says
// false where the process ends before long: the turn is better asked for in another.
func (p *Process) TurnStarted() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.running++
	return p.state == Ready
}

// TurnEnded counts a turn out. It returns when a process that ends with its last turn has ended.
func (p *Process) TurnEnded(ctx context.Context, end TurnEnd) {
	p.prog.Ended(p.peer.Handled())
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
	case end == EndDetached && p.state != Dead:
		p.become(Detached)
	case end == EndLeftovers && p.state != Detached: // the next process ends it with the turns that it has
		p.become(Ending)
	}
	return p.state == Ending && p.running == 0
}

// StopAlone keeps further sessions and turns out, and stops the process unless turns of others run in it: it ends with the
// last of them then.
func (p *Process) StopAlone(ctx context.Context, grace time.Duration) error {
	if !p.Drain() {
		return nil
	}
	return p.Stop(ctx, grace)
}
