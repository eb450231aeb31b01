package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// show is called with mu held, so that an ask is shown as it changes.
func (a *approvals) show(ask Ask) {
	if ask.State != AskOpen {
		if stop := a.timers[ask.ID]; stop != nil {
			stop()
			delete(a.timers, ask.ID)
		}
	}
	a.o.show(ask)
}

func (o *Orchestrator) show(ask Ask) {
	if o.opts.Asks == nil {
		return
	}
	if ask.secret() {
		ask.Answers = nil
	}
	o.opts.Asks.ShowAsk(ask)
}

// arm sets the timer of an open ask. mu is held.
func (a *approvals) arm(ask Ask) {
	if a.timers[ask.ID] == nil {
		a.wait(ask, ask.Expires.Sub(a.o.now()))
	}
}

// expiryStep is how often the clock is looked at that people go by: timers stand still while the machine sleeps.
const expiryStep = time.Minute

// wait expires an ask after left, or as soon as it is seen that its time is over: also where the clock is set back
// it takes no longer. mu is held.
func (a *approvals) wait(ask Ask, left time.Duration) {
	step := min(left, expiryStep, max(ask.Expires.Sub(a.o.now()), 0))
	a.timers[ask.ID] = a.o.opts.After(step, func() {
		if !a.o.open() {
			return // it is denied after the next start
		}
		defer a.o.wg.Done()
		if left > step && a.o.now().Before(ask.Expires) {
			a.waitOn(ask, left-step)
			return
		}
		a.expire(ask.ID)
	})
}

func (a *approvals) waitOn(ask Ask, left time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over && a.timers[ask.ID] != nil {
		a.wait(ask, left)
	}
}

// expire denies an ask that no user decided.
func (a *approvals) expire(id AskID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	reason := expiredSentence
	if ask, err := a.o.opts.Store.FindAsk(a.keep, id); err == nil && ask.Approval == nil {
		reason = unansweredSentence
	}
	ask, won, err := a.o.opts.Store.DecideAsk(a.keep, AskDecision{Ask: id, State: AskExpired, Reason: reason, At: a.o.now()})
	if err != nil {
		a.log.Error("let an ask expire", "err", err)
		return
	}
	if !won {
		return
	}
	if _, err := a.tell(ask); err != nil {
		a.log.Error("hand a decision to the agent", "ask", ask.Requests, "err", err)
	}
	a.show(ask)
}

// tell hands a decision to the agent, once for each request that waits for it here. gone says that there were
// such, and that the agent no longer waits for any. mu is held.
func (a *approvals) tell(ask Ask) (gone bool, err error) {
	var errs []error
	tried, missed := 0, 0
	for _, native := range ask.Requests {
		if told, here := a.told[native]; told || !here {
			continue
		}
		tried++
		switch err := a.hand(native, decisionOf(ask)); {
		case errors.Is(err, cli.ErrNotAsked):
			missed++
			a.told[native] = true
		case errors.Is(err, cli.ErrNoTurn): // it ended as it heard it
			a.told[native] = true
		case err != nil:
			errs = append(errs, err)
		default:
			a.told[native] = true
		}
		if a.told[native] {
			a.card.Show(cli.AskWithdrawn{ID: native})
		}
	}
	return tried > 0 && missed == tried, errors.Join(errs...)
}

func (a *approvals) hand(native cli.AskID, d cli.Decision) error {
	if isProjectAsk(native) {
		select {
		case a.project <- d:
			return nil
		default:
			return cli.ErrNotAsked
		}
	}
	ctx, cancel := context.WithTimeout(a.keep, tellWait)
	defer cancel()
	return a.o.opts.Gateway.Decide(ctx, a.turn.ID, native, d)
}

func (a *approvals) deny(native cli.AskID, reason string) {
	defer a.card.Show(cli.AskWithdrawn{ID: native})
	if err := a.hand(native, cli.Decision{Reason: reason}); err != nil && !errors.Is(err, cli.ErrNotAsked) {
		a.log.Error("deny what the agent asks", "err", err)
	}
}

// decisionOf is an ask's end as the agent is told it. What is not clearly allowed is denied.
func decisionOf(ask Ask) cli.Decision {
	switch {
	case ask.State == AskAllowed:
		return cli.Decision{Allow: true}
	case ask.State == AskAnswered && len(ask.Answers) == len(ask.Questions):
		return cli.Decision{Allow: true, Answers: ask.Answers}
	case ask.State == AskAnswered:
		return cli.Decision{Reason: secretSentence}
	case ask.State == AskWithdrawn:
		return cli.Decision{Reason: goneSentence}
	}
	return cli.Decision{Reason: ask.Reason}
}
