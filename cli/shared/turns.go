package shared

import (
	"context"
	"time"
)

// TurnEnd describes how a turn ended, from the view of its process.
type TurnEnd string

// The ways a turn ends.
const (
	EndOver TurnEnd = "over"
	// EndLeftovers: child processes of the turn's tools may still run. They cannot be distinguished from the processes
	// of other turns.
	EndLeftovers TurnEnd = "leftovers"
	EndDetached  TurnEnd = "detached" // the turn continues without ductor, and so does the process
)

// TurnStarted counts a turn, before the agent gets its prompt. A resumed turn is already counted. It returns false if
// the process ends soon; the caller should then use another process.
func (p *Process) TurnStarted() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running++
	return p.use.state == Ready
}

// TurnEnded stops counting a turn. If the process ends with its last turn, TurnEnded returns after the process has
// ended.
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

// count stops counting a turn, and reports whether the process must be stopped now.
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

// StopAlone rejects further sessions and turns. It stops the process at once if no other turn runs in it. Otherwise the
// process ends with the last of its turns.
func (p *Process) StopAlone(ctx context.Context, grace time.Duration) error {
	if !p.Drain() {
		return nil
	}
	return p.Stop(ctx, grace)
}
