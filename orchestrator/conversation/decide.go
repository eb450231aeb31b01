package conversation

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// heldAgents is a Gateway that waits for the snapshot of the turn's files before it tells the agent that a request is
// allowed. The wait has a time limit. It happens in the background, so the user who decides need not wait.
type heldAgents struct {
	orchestrator.Gateway
	e *Engine
}

// Decide passes a decision to the agent at once, or returns nil and passes it on later. If the turn ends before that,
// the agent no longer needs the decision. If ductor ends before that, the agent repeats its request.
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

// handOverWait limits the time from a decision until the agent has it, including the wait for the snapshot.
const handOverWait = 15 * time.Second
