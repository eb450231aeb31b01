package approval

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

const acceptWait = 10 * time.Second

// deliver passes the decision about an approval to the agent. If several identical requests share the approval, it
// answers each of them. The first result is true if the agent no longer waits for any of these requests. The caller
// holds mu.
func (r *Requests) deliver(approval orchestrator.Approval) (gone bool, err error) {
	var errs []error
	tried, missed := 0, 0
	for _, request := range approval.AgentIDs {
		if told, here := r.delivered[request]; told || !here {
			continue
		}
		tried++
		d := decisionOf(approval)
		err := r.send(request, d)
		switch {
		case errors.Is(err, cli.ErrNotAsked):
			missed++
			r.delivered[request] = true
		case errors.Is(err, cli.ErrNoTurn):
			r.delivered[request] = true
		case err != nil:
			errs = append(errs, err)
		default:
			r.delivered[request] = true
		}
		if r.delivered[request] {
			r.turn.Show(cli.ApprovalWithdrawn{ID: request, Allowed: d.Allow && err == nil, Pressed: approval.By != 0})
		}
	}
	return tried > 0 && missed == tried, errors.Join(errs...)
}

// deliverOrLog calls deliver and logs its error. The caller holds mu.
func (r *Requests) deliverOrLog(approval orchestrator.Approval) {
	if _, err := r.deliver(approval); err != nil {
		r.log.Error("deliver a decision to the agent", "approval", approval.AgentIDs, "err", err)
	}
}

func (r *Requests) send(request cli.ApprovalID, d cli.Decision) error {
	if own, is := r.own[request]; is {
		own.decided <- d // does not block: the channel can buffer the decision
		delete(r.own, request)
		return nil
	}
	ctx, cancel := context.WithTimeout(r.recordContext(), acceptWait)
	defer cancel()
	return r.s.passDecision(ctx, r.turn.Turn.ID, request, d)
}

// passDecision passes a decision to the agent. A decision that allows the request must not reach the agent before the
// snapshot of the turn's files is complete. If necessary, passDecision waits for the snapshot in the background and
// returns nil, so that the user who decides need not wait. If the turn ends during this wait, the agent never gets the
// decision. If ductor ends during this wait, the agent repeats its request later.
func (s *Service) passDecision(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	files := s.opts.Snapshots
	if !d.Allow || files == nil {
		return s.opts.Agents.Decide(ctx, turn, id, d)
	}
	allow := func(ctx context.Context) error {
		files.AwaitSnapshot(ctx, turn, id)
		return s.opts.Agents.Decide(ctx, turn, id, d)
	}
	if files.SnapshotTaken(turn) {
		return allow(ctx)
	}
	leave, ok := s.opts.Enter()
	if !ok {
		return allow(ctx)
	}
	go func() {
		defer leave()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotWait)
		defer cancel()
		if err := allow(ctx); err != nil {
			s.log.Warn("deliver a decision to the agent", "turn", turn, "approval", id, "err", err)
		}
	}()
	return nil
}

// snapshotWait limits how long a decision waits for a snapshot before the agent gets the decision.
const snapshotWait = 15 * time.Second

func (r *Requests) deny(request cli.ApprovalID, reason string) {
	defer r.turn.Show(cli.ApprovalWithdrawn{ID: request})
	if err := r.send(request, cli.Decision{Reason: reason}); err != nil && !errors.Is(err, cli.ErrNotAsked) {
		r.log.Error("deny a request of the agent", "err", err)
	}
}

// decisionOf returns the decision that the agent gets for an approval that is no longer open. It denies the request,
// unless a user or a rule allowed it, or a user answered all questions.
func decisionOf(approval orchestrator.Approval) cli.Decision {
	switch {
	case approval.State == orchestrator.ApprovalAllowed:
		return cli.Decision{Allow: true}
	case approval.State == orchestrator.ApprovalAnswered && len(approval.Answers) == len(approval.Questions):
		return cli.Decision{Allow: true, Answers: approval.Answers}
	case approval.State == orchestrator.ApprovalAnswered:
		return cli.Decision{Reason: secretSentence}
	case approval.State == orchestrator.ApprovalWithdrawn:
		return cli.Decision{Reason: goneSentence}
	}
	return cli.Decision{Reason: approval.Reason}
}
