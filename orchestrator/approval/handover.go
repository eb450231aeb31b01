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
func (r *Requests) tell(ask orchestrator.Ask) (gone bool, err error) {
	var errs []error
	tried, missed := 0, 0
	for _, request := range ask.Requests {
		if told, here := r.told[request]; told || !here {
			continue
		}
		tried++
		switch err := r.hand(request, decisionOf(ask)); {
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
			r.turn.Show(cli.AskWithdrawn{ID: request})
		}
	}
	return tried > 0 && missed == tried, errors.Join(errs...)
}

func (r *Requests) hand(request cli.AskID, d cli.Decision) error {
	if isProjectAsk(request) {
		select {
		case r.project <- d:
			return nil
		default:
			return cli.ErrNotAsked
		}
	}
	ctx, cancel := context.WithTimeout(r.keep(), tellWait)
	defer cancel()
	return r.s.opts.Agents.Decide(ctx, r.turn.Turn.ID, request, d)
}

func (r *Requests) deny(request cli.AskID, reason string) {
	defer r.turn.Show(cli.AskWithdrawn{ID: request})
	if err := r.hand(request, cli.Decision{Reason: reason}); err != nil && !errors.Is(err, cli.ErrNotAsked) {
		r.log.Error("deny what the agent asks", "err", err)
	}
}

// decisionOf is an ask's end as the agent is told it. What is not clearly allowed is denied.
func decisionOf(ask orchestrator.Ask) cli.Decision {
	switch {
	case ask.State == orchestrator.AskAllowed:
		return cli.Decision{Allow: true}
	case ask.State == orchestrator.AskAnswered && len(ask.Answers) == len(ask.Questions):
		return cli.Decision{Allow: true, Answers: ask.Answers}
	case ask.State == orchestrator.AskAnswered:
		return cli.Decision{Reason: secretSentence}
	case ask.State == orchestrator.AskWithdrawn:
		return cli.Decision{Reason: goneSentence}
	}
	return cli.Decision{Reason: ask.Reason}
}
