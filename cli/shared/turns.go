package shared

import (
	"context"
	"time"
)

// TurnEnd describes what a turn leaves behind in its process.
type TurnEnd string

// TurnEnd values.
const (
	EndOver TurnEnd = "over"
	// EndLeftovers means that child processes of the turn's tools may still run. ductor cannot tell them from child
	// processes of other turns.
	EndLeftovers TurnEnd = "leftovers"
	EndDetached  TurnEnd = "detached" // ductor detached from the turn, which continues in the process
)

// TurnStarted counts a turn. Call it before sending the prompt, but not for a resumed turn, which is already counted.
// TurnStarted returns false if the process accepts no more turns; the caller then uses another process.
func (p *Process) TurnStarted() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running++
	return p.use.state == Ready
}

// TurnEnded records that a turn has ended. If the process is in the state Ending and no other turn is running,
// TurnEnded stops the process and waits until it has ended.
func (p *Process) TurnEnded(ctx context.Context, end TurnEnd) {
	p.prog.Ended(p.peer.Handled())
	if !p.turnOver(end) {
		return
	}
	if err := p.Stop(context.WithoutCancel(ctx), p.pool.opts.Grace); err != nil {
		p.pool.opts.Logger.Error("an agent with child processes of an aborted turn did not end",
			"agent", string(p.pool.opts.Agent), "err", err)
	}
}

// turnOver reduces the number of running turns. It reports whether the caller must stop the process.
func (p *Process) turnOver(end TurnEnd) (stop bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running--
	switch {
	case end == EndDetached && p.use.state != Dead:
		p.become(Detached)
	case end == EndLeftovers && p.use.state != Detached: // the next process of ductor handles a detached process
		p.become(Ending)
	}
	return p.use.state == Ending && p.use.running == 0
}

// StopAlone makes the process accept no more sessions and turns. It stops the process if at most one turn is running in
// it. Otherwise, the process ends when its last session leaves.
func (p *Process) StopAlone(ctx context.Context, grace time.Duration) error {
	if !p.Drain() {
		return nil
	}
	return p.Stop(ctx, grace)
}
