package approval

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// reasonBytes is how much of a user's reason reaches the agent.
const reasonBytes = 4000

// Decide decides an ask, once; see AskDesk.
func (s *Service) Decide(ctx context.Context, id orchestrator.AskID, nonce string, by orchestrator.Press, v orchestrator.Verdict) (orchestrator.Ask, error) {
	ask, err := s.opts.Store.FindAsk(ctx, id)
	if err != nil {
		return orchestrator.Ask{}, notFound(err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(ask.Nonce), []byte(nonce)) != 1:
		return orchestrator.Ask{}, orchestrator.ErrNoAsk
	case ask.Conversation != by.Conversation:
		return orchestrator.Ask{}, orchestrator.ErrElsewhere
	case !mayDecide(ask, by.Person):
		return orchestrator.Ask{}, orchestrator.ErrNotApprover
	}
	if err := s.whyClosed(ask); err != nil {
		return s.tellAgain(ctx, ask), err
	}
	d, err := s.decision(ask, by, v)
	if err != nil {
		return ask, err
	}
	now, won, err := s.opts.Store.DecideAsk(ctx, d)
	switch {
	case err != nil:
		return ask, fmt.Errorf("decide ask: %w", err)
	case !won && now.State == orchestrator.AskOpen:
		return now, orchestrator.ErrAskWithdrawn // its turn is over or aborted, and takes its asks along
	case !won:
		return now, s.whyClosed(now)
	}
	return s.decided(context.WithoutCancel(ctx), now, d, v)
}

// whyClosed says why an ask cannot be decided any more; nil if it can.
func (s *Service) whyClosed(ask orchestrator.Ask) error {
	switch {
	case ask.State == orchestrator.AskWithdrawn:
		return orchestrator.ErrAskWithdrawn
	case ask.State == orchestrator.AskExpired, ask.State == orchestrator.AskOpen && !s.opts.Now().Before(ask.Expires):
		return orchestrator.ErrAskExpired
	case ask.State == orchestrator.AskOpen:
		return nil
	}
	return orchestrator.ErrAskDecided
}

// decision is what a verdict makes of an ask; ErrBadChoice when it does not fit.
func (s *Service) decision(ask orchestrator.Ask, by orchestrator.Press, v orchestrator.Verdict) (orchestrator.AskDecision, error) {
	d := orchestrator.AskDecision{Ask: ask.ID, Choice: v.Choice, By: by.Person, Updates: by.Updates, At: s.opts.Now(), Secret: isSecret(ask)}
	session, lasting := offer(ask)
	switch {
	case v.Choice == orchestrator.Deny:
		d.State, d.Reason = orchestrator.AskDenied, cli.Shorten(strings.TrimSpace(v.Reason), reasonBytes)
	case v.Choice == orchestrator.Answer && answers(ask.Questions, v.Answers):
		d.State = orchestrator.AskAnswered
		if !isSecret(ask) {
			d.Answers = v.Answers
		}
	case v.Choice == orchestrator.AllowOnce && ask.Approval != nil && ask.Approval.Allowable():
		d.State = orchestrator.AskAllowed
	// A rule is made only as it was shown: what a path leads to may have changed since.
	case v.Choice == orchestrator.AllowSession && session.Kind != "" && session.Text == ask.SessionRule:
		d.State, d.Rule = orchestrator.AskAllowed, &session
	case v.Choice == orchestrator.AllowPattern && lasting.Kind != "" && lasting.Text == ask.Rule:
		d.State, d.Rule = orchestrator.AskAllowed, &lasting
	default:
		return orchestrator.AskDecision{}, orchestrator.ErrBadChoice
	}
	if d.Rule != nil {
		d.Rule.ID, d.Rule.By, d.Rule.Created = orchestrator.RuleID(s.opts.NewID()), by.Person, d.At
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
func (s *Service) decided(ctx context.Context, ask orchestrator.Ask, d orchestrator.AskDecision, v orchestrator.Verdict) (orchestrator.Ask, error) {
	r := s.of(ask.Turn)
	if r == nil {
		s.show(ask)
		return ask, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	told := ask
	if ask.State == orchestrator.AskAnswered {
		told.Answers = v.Answers // also those that are not kept
		r.turn.Secrets.Learn(ask.Questions, v.Answers)
	}
	gone, err := r.tell(told)
	if gone {
		withdrawn, err := s.opts.Store.WithdrawAsk(ctx, ask.ID, s.opts.Now())
		if err != nil {
			return ask, fmt.Errorf("withdraw ask: %w", err)
		}
		r.show(withdrawn)
		return withdrawn, orchestrator.ErrAskWithdrawn
	}
	r.show(ask)
	if d.Rule != nil {
		r.sweep(*d.Rule)
	}
	if err != nil {
		return ask, fmt.Errorf("hand the decision to the agent: %w", err)
	}
	return ask, nil
}

// sweep lets a new rule decide what else is open. mu is held.
func (r *Requests) sweep(rule orchestrator.Rule) {
	open, err := r.s.opts.Store.OpenAsks(r.keep())
	if err != nil {
		r.log.Error("load open asks", "err", err)
	}
	for _, ask := range open {
		if ask.Turn != r.turn.Turn.ID || !covers(rule, ask) || r.s.touchesOwn(ask) {
			continue
		}
		ask, won, err := r.s.opts.Store.DecideAsk(r.keep(), orchestrator.AskDecision{Ask: ask.ID, State: orchestrator.AskAllowed, Ruled: rule.Text, At: r.s.opts.Now()})
		if err == nil && won {
			_, err = r.tell(ask)
			r.show(ask)
		}
		if err != nil {
			r.log.Error("let a rule decide", "err", err)
		}
	}
}

// tellAgain hands over a decision once more that did not reach the agent. An ask whose time is over is denied where that
// was not noticed yet. It gives the ask as it is then.
func (s *Service) tellAgain(ctx context.Context, ask orchestrator.Ask) orchestrator.Ask {
	r := s.of(ask.Turn)
	switch {
	case r == nil:
	case ask.State == orchestrator.AskOpen:
		r.expire(ask.ID)
		if now, err := s.opts.Store.FindAsk(ctx, ask.ID); err == nil {
			ask = now
		}
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, err := r.tell(ask); err != nil {
			r.log.Error("hand a decision to the agent", "err", err)
		}
	}
	return ask
}
