package approval

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// tellWait is how long an agent may take to accept a decision.
const tellWait = 10 * time.Second

// tell hands a decision to the agent, once for each request that waits for it here. gone says that there were
// such, and that the agent no longer waits for any. mu is held.
func (r *Requests) tell(approval orchestrator.Approval) (gone bool, err error) {
	var errs []error
	tried, missed := 0, 0
	for _, request := range approval.AgentIDs {
		if told, here := r.told[request]; told || !here {
			continue
		}
		tried++
		d := decisionOf(approval)
		err := r.hand(request, d)
		switch {
		case errors.Is(err, cli.ErrNotAsked):
			missed++
			r.told[request] = true
		case errors.Is(err, cli.ErrNoTurn): // it ended as it heard it
			r.told[request] = true
		case err != nil:
			errs = append(errs, err)
		default:
			r.told[request] = true
		}
		if r.told[request] {
			r.turn.Show(cli.ApprovalWithdrawn{ID: request, Allowed: d.Allow && err == nil, Pressed: approval.By != 0})
		}
	}
	return tried > 0 && missed == tried, errors.Join(errs...)
}

// tellOrLog is tell that logs what goes wrong. mu is held.
func (r *Requests) tellOrLog(approval orchestrator.Approval) {
	if _, err := r.tell(approval); err != nil {
		r.log.Error("hand a decision to the agent", "approval", approval.AgentIDs, "err", err)
	}
}

func (r *Requests) hand(request cli.ApprovalID, d cli.Decision) error {
	if own, is := r.own[request]; is {
		own.decided <- d // it has room for the one decision
		delete(r.own, request)
		return nil
	}
	ctx, cancel := context.WithTimeout(r.keep(), tellWait)
	defer cancel()
	return r.s.opts.Agents.Decide(ctx, r.turn.Turn.ID, request, d)
}

func (r *Requests) deny(request cli.ApprovalID, reason string) {
	defer r.turn.Show(cli.ApprovalWithdrawn{ID: request})
	if err := r.hand(request, cli.Decision{Reason: reason}); err != nil && !errors.Is(err, cli.ErrNotAsked) {
		r.log.Error("deny what the agent asks", "err", err)
	}
}

// decisionOf is an approval's end as the agent is told it. What is not clearly allowed is denied.
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
