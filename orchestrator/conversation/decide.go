package conversation

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// heldAgents tell agents that they may go on once the files have been looked at, or when that takes too long. The user who
// decides does not wait for that.
type heldAgents struct {
	orchestrator.Gateway
	e *Engine
}

// Decide hands over a decision, or returns nil and hands it over later. An agent that does not hear of it, because ductor or the turn
// ended before, has no use for it or asks again.
func (h heldAgents) Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	files := h.e.opts.Snapshots
	if !d.Allow || files == nil {
		return h.Gateway.Decide(ctx, turn, id, d)
	}
	hand := func(ctx context.Context) error {
		files.Hold(ctx, turn, id)
		return h.Gateway.Decide(ctx, turn, id, d)
	}
	if files.Looked(turn) || !h.e.open() {
		return hand(ctx)
	}
	go func() {
		defer h.e.wg.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWait)
		defer cancel()
		if err := hand(ctx); err != nil {
			h.e.log.Warn("hand a decision to the agent", "turn", turn, "approval", id, "err", err)
		}
	}()
	return nil
}

// handOverWait is how long the look at the files and the agent may take until the agent has a decision.
const handOverWait = 15 * time.Second
