package shared

import (
	"context"
	"time"
)

// TurnEnd is the way a turn ended, for its process.
type TurnEnd string

// The ways a turn ends.
const (
	EndOver TurnEnd = "over"
	// Child processes of its tools may still run. Nothing distinguishes them from other turns' processes.
	EndLeftovers TurnEnd = "leftovers"
	EndDetached  TurnEnd = "detached" // the turn continues without ductor, and so does the process
)

// TurnStarted adds a turn, before the agent gets its prompt. A resumed turn already counts. It returns false if the
// process ends soon: the caller should use another process.
func (p *Process) TurnStarted() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running++
	return p.use.state == Ready
}

// TurnEnded removes a turn. If the process ends with its last turn, it returns after that end.
func (p *Process) TurnEnded(ctx context.Context, end TurnEnd) {
	p.prog.Ended(p.peer.Handled())
	if !p.count(end) {
		return
	}
	if err := p.Stop(context.WithoutCancel(ctx), p.pool.opts.Grace); err != nil {
		p.pool.opts.Logger.Error("an agent with child processes of an aborted turn did not end",
			"agent", string(p.pool.opts.Agent), "err", err)
	}
}

// count removes a turn, and reports whether the process must be stopped now.
func (p *Process) count(end TurnEnd) (stop bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running--
	switch {
	case end == EndDetached && p.use.state != Dead:
		p.become(Detached)
	case end == EndLeftovers && p.use.state != Detached: // the next process ends it together with its turns
		p.become(Ending)
	}
	return p.use.state == Ending && p.use.running == 0
}

// StopAlone rejects further sessions and turns, and stops the process unless other turns run in it: then it ends with
// the last of them.
func (p *Process) StopAlone(ctx context.Context, grace time.Duration) error {
	if !p.Drain() {
		return nil
	}
	return p.Stop(ctx, grace)
}
