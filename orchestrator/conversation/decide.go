package conversation

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// heldAgents delays decisions that allow an agent to continue until the snapshot of the files is complete or takes too
// long. The deciding user does not wait for that.
type heldAgents struct {
	orchestrator.Gateway
	e *Engine
}

// Decide passes on a decision, or returns nil and passes it on later. If ductor or the turn ends before, the agent
// either no longer needs the decision or asks again.
func (h heldAgents) Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	files := h.e.opts.Snapshots
	if !d.Allow || files == nil {
		return h.Gateway.Decide(ctx, turn, id, d)
	}
	hand := func(ctx context.Context) error {
		files.AwaitSnapshot(ctx, turn, id)
		return h.Gateway.Decide(ctx, turn, id, d)
	}
	if files.SnapshotTaken(turn) || !h.e.open() {
		return hand(ctx)
	}
	go func() {
		defer h.e.wg.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWait)
		defer cancel()
		if err := hand(ctx); err != nil {
			h.e.log.Warn("deliver a decision to the agent", "turn", turn, "approval", id, "err", err)
		}
	}()
	return nil
}

// handOverWait limits the time from a decision until the agent has it: for the snapshot and for the agent.
const handOverWait = 15 * time.Second
