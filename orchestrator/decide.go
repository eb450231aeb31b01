package orchestrator

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

var _ AskDesk = (*Orchestrator)(nil)

// reasonBytes is how much of a person's reason reaches the agent.
const reasonBytes = 4000

// Decide decides an ask, once; see AskDesk.
func (o *Orchestrator) Decide(ctx context.Context, id AskID, nonce string, by Press, v Verdict) (Ask, error) {
	ask, err := o.opts.Store.FindAsk(ctx, id)
	if err != nil {
		return Ask{}, notFound(err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(ask.Nonce), []byte(nonce)) != 1:
		return Ask{}, ErrNoAsk
	case ask.Conversation != by.Conversation:
		return Ask{}, ErrElsewhere
	case !ask.mayDecide(by.Person):
		return Ask{}, ErrNotApprover
	}
	if err := o.whyClosed(ask); err != nil {
		return o.retell(ctx, ask), err
	}
	d, err := o.decision(ask, by, v)
	if err != nil {
		return ask, err
	}
	now, won, err := o.opts.Store.DecideAsk(ctx, d)
	switch {
	case err != nil:
		return ask, fmt.Errorf("decide ask: %w", err)
	case !won && now.State == AskOpen:
		return now, ErrAskWithdrawn // its turn is over or aborted, and takes its asks along
	case !won:
		return now, o.whyClosed(now)
	}
	return o.decided(context.WithoutCancel(ctx), now, d, v)
}

func notFound(err error) error {
	if errors.Is(err, ErrNoAsk) {
		return ErrNoAsk
	}
	return fmt.Errorf("load ask: %w", err)
}

// whyClosed says why an ask cannot be decided any more; nil if it can.
func (o *Orchestrator) whyClosed(ask Ask) error {
	switch {
	case ask.State == AskWithdrawn:
		return ErrAskWithdrawn
	case ask.State == AskExpired, ask.State == AskOpen && !o.now().Before(ask.Expires):
		return ErrAskExpired
	case ask.State == AskOpen:
		return nil
	}
	return ErrAskDecided
}

// decision is what a verdict makes of an ask; ErrBadChoice when it does not fit.
func (o *Orchestrator) decision(ask Ask, by Press, v Verdict) (AskDecision, error) {
	d := AskDecision{Ask: ask.ID, Choice: v.Choice, By: by.Person, Updates: by.Updates, At: o.now(), Secret: ask.secret()}
	session, lasting := offer(ask)
	switch {
	case v.Choice == Deny:
		d.State, d.Reason = AskDenied, cli.Shorten(strings.TrimSpace(v.Reason), reasonBytes)
	case v.Choice == Answer && answers(ask.Questions, v.Answers):
		d.State = AskAnswered
		if !ask.secret() {
			d.Answers = v.Answers
		}
	case v.Choice == AllowOnce && ask.Approval != nil && ask.Approval.Allowable():
		d.State = AskAllowed
	// A rule is made only as it was shown: what a path leads to may have changed since.
	case v.Choice == AllowSession && session.Kind != "" && session.Text == ask.SessionRule:
		d.State, d.Rule = AskAllowed, &session
	case v.Choice == AllowPattern && lasting.Kind != "" && lasting.Text == ask.Rule:
		d.State, d.Rule = AskAllowed, &lasting
	default:
		return AskDecision{}, ErrBadChoice
	}
	if d.Rule != nil {
		d.Rule.ID, d.Rule.By, d.Rule.Created = RuleID(o.opts.NewID()), by.Person, d.At
		d.Ruled = d.Rule.Text
	}
	return d, nil
}

// answers says whether there is an answer to each question, of those that it has.
func answers(questions []cli.Question, given [][]string) bool {
	if len(questions) == 0 || len(given) != len(questions) {
		return false
	}
	for i, q := range questions {
		if len(given[i]) == 0 || len(given[i]) > 1 && !q.Multi {
			return false
		}
		for _, text := range given[i] {
			offered := slices.ContainsFunc(q.Options, func(o cli.Option) bool { return o.Label == text })
			if !offered && (strings.TrimSpace(text) == "" || !q.Free && len(q.Options) > 0) {
				return false
			}
		}
	}
	return true
}

// decided hands a decision that is stored to the agent, and shows it. Where the agent has not asked again
// since a restart, it is handed over when it does.
func (o *Orchestrator) decided(ctx context.Context, ask Ask, d AskDecision, v Verdict) (Ask, error) {
	a := o.approvalsOf(ask.Turn)
	if a == nil {
		o.show(ask)
		return ask, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	told := ask
	if ask.State == AskAnswered {
		told.Answers = v.Answers // also those that are not kept
		a.hide.learn(ask.Questions, v.Answers)
	}
	gone, err := a.tell(told)
	if gone {
		withdrawn, err := o.opts.Store.WithdrawAsk(ctx, ask.ID, o.now())
		if err != nil {
			return ask, fmt.Errorf("withdraw ask: %w", err)
		}
		a.show(withdrawn)
		return withdrawn, ErrAskWithdrawn
	}
	a.show(ask)
	if d.Rule != nil {
		a.sweep(*d.Rule)
	}
	if err != nil {
		return ask, fmt.Errorf("hand the decision to the agent: %w", err)
	}
	return ask, nil
}

// sweep lets a new rule decide what else is open. mu is held.
func (a *approvals) sweep(r Rule) {
	open, err := a.o.opts.Store.OpenAsks(a.keep)
	if err != nil {
		a.log.Error("load open asks", "err", err)
	}
	for _, ask := range open {
		if ask.Turn != a.turn.ID || !r.covers(ask) || a.o.touchesOwn(ask) {
			continue
		}
		ask, won, err := a.o.opts.Store.DecideAsk(a.keep, AskDecision{Ask: ask.ID, State: AskAllowed, Ruled: r.Text, At: a.o.now()})
		if err == nil && won {
			_, err = a.tell(ask)
			a.show(ask)
		}
		if err != nil {
			a.log.Error("let a rule decide", "err", err)
		}
	}
}

// retell hands over a decision once more that did not reach the agent. An ask whose time is over is denied where that
// was not noticed yet. It gives the ask as it is then.
func (o *Orchestrator) retell(ctx context.Context, ask Ask) Ask {
	a := o.approvalsOf(ask.Turn)
	if a == nil {
		return ask
	}
	if ask.State == AskOpen {
		a.expire(ask.ID)
		if now, err := o.opts.Store.FindAsk(ctx, ask.ID); err == nil {
			ask = now
		}
		return ask
	}
	a.retell(ask)
	return ask
}

func (a *approvals) retell(ask Ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.tell(ask); err != nil {
		a.log.Error("hand a decision to the agent", "err", err)
	}
}

// Ask loads an ask for who may see it; see AskDesk.
func (o *Orchestrator) Ask(ctx context.Context, id AskID, in ConversationID) (Ask, error) {
	ask, err := o.opts.Store.FindAsk(ctx, id)
	if err != nil {
		return Ask{}, notFound(err)
	}
	if ask.Conversation != in {
		return Ask{}, ErrElsewhere
	}
	return ask, nil
}

// AskAt finds the ask that a message shows; see AskDesk.
func (o *Orchestrator) AskAt(ctx context.Context, in ConversationID, message int) (Ask, error) {
	ask, err := o.opts.Store.FindAskAt(ctx, in, message)
	if err != nil {
		return Ask{}, notFound(err)
	}
	return ask, nil
}

// AskShown records which message shows an ask; see AskDesk.
func (o *Orchestrator) AskShown(ctx context.Context, id AskID, state SendState, message int) error {
	return o.opts.Store.SetAskShown(ctx, id, state, message)
}

// withdrawTurn closes the asks of a turn that has ended.
func (o *Orchestrator) withdrawTurn(ctx context.Context, turn cli.TurnID) {
	asks, err := o.opts.Store.WithdrawTurn(ctx, turn, o.now())
	if err != nil {
		o.log.Error("withdraw the asks of a turn", "turn", turn, "err", err)
	}
	for _, ask := range asks {
		o.show(ask)
	}
}

// recoverAsks closes the asks of turns that do not go on. Those of the others stay open: their agents ask again.
func (o *Orchestrator) recoverAsks(ctx context.Context, turns []Turn, remains map[cli.TurnID]cli.Remains) error {
	open, err := o.opts.Store.OpenAsks(ctx)
	if err != nil {
		return fmt.Errorf("load open asks: %w", err)
	}
	for _, ask := range open {
		goesOn := slices.ContainsFunc(turns, func(t Turn) bool {
			return t.ID == ask.Turn && t.State == TurnRunning && remains[t.ID] == cli.RemainsRun
		})
		if !goesOn {
			o.withdrawTurn(ctx, ask.Turn)
		}
	}
	return nil
}
