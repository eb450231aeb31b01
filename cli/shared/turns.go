package shared

import (
	"context"
	"time"
)

// TurnEnd describes how a turn ended for its process.
type TurnEnd string

// TurnEnd values.
const (
	EndOver TurnEnd = "over"
	// EndLeftovers means that child processes of the turn's tools may still run. They cannot be distinguished from
	// processes of other turns.
	EndLeftovers TurnEnd = "leftovers"
	EndDetached  TurnEnd = "detached" // the turn continues without ductor, and so does the process
)

// TurnStarted counts a turn before the agent gets its prompt. A resumed turn is already counted. It returns false if
// the process is about to end; the caller then uses another process.
func (p *Process) TurnStarted() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running++
	return p.use.state == Ready
}

// TurnEnded stops counting a turn. If the process is to end with its last turn, TurnEnded waits for the end of the
// process.
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

// count stops counting a turn. It reports whether the caller must stop the process now.
func (p *Process) count(end TurnEnd) (stop bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.running--
	switch {
	case end == EndDetached && p.use.state != Dead:
		p.become(Detached)
	case end == EndLeftovers && p.use.state != Detached: // the next process of ductor ends it
		p.become(Ending)
	}
	return p.use.state == Ending && p.use.running == 0
}

// StopAlone rejects further sessions and turns. It stops the process at once if no other turn runs in it. Otherwise the
// process ends with its last turn.
func (p *Process) StopAlone(ctx context.Context, grace time.Duration) error {
	if !p.Drain() {
		return nil
	}
	return p.Stop(ctx, grace)
}
