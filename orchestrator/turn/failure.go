package turn

import (
	"context"
	"errors"
	"slices"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// followUps records which further attempts a turn has made after a failure.
type followUps struct {
	repeated    bool // the same agent tried once more, without a pause
	substituted bool // another agent made an attempt
	retries     int  // number of further tries by the same agent, each after a pause
}

// followUp decides whether the turn makes another attempt after a failure. Another attempt is possible only if the
// agent has not done anything yet. followUp waits until the next attempt may start, and returns the agent for it.
func (t *Turn) followUp(result *cli.Result, so *followUps, effort cli.Effort) (who Choice, ok bool) {
	breakers, in, account, f := t.runner.opts.Breakers, t.turn.Sandbox, t.turn.Entry.Account, result.Err
	ran, _ := t.Events.Ran()
	if f == nil || ran || result.Text != "" || t.ctx.Err() != nil || result.Aborted || result.Detached {
		return Choice{}, false
	}
	same := Choice{Agent: t.turn.Agent, Model: t.turn.Model, Effort: effort}
	switch t.runner.automatic(f.Kind) {
	case orchestrator.AutomaticOnce:
		if so.repeated || result.Fallback || errors.Is(f, cli.ErrStale) ||
			!breakers.MayRepeat(in, t.turn.Agent, account) {
			return Choice{}, false
		}
		so.repeated = true
		return same, true
	case orchestrator.AutomaticRetries:
		if so.retries >= t.runner.opts.Settings().Retries || !breakers.MayRepeat(in, t.turn.Agent, account) {
			return Choice{}, false
		}
		so.retries++
		return same, t.pause(result, so.retries)
	case orchestrator.AutomaticSubstitute:
		other, ok := t.runner.substitute(t.ctx, t.turn, t.exhausted(t.ctx, t.turn.Agent))
		if so.substituted || !ok {
			return Choice{}, false
		}
		so.substituted = true
		breakers.Ended(in, t.turn.Agent, account, f)
		t.Events.Show(cli.Substituted{By: other.Agent, Why: f})
		return other, true
	}
	return Choice{}, false
}

// Available returns the agent that should run a turn now. This is the chosen agent, unless its circuit breaker is open.
// In this case Available tries to find a substitute in the configuration. But if the breaker is open only because of a
// usage limit, a substitute requires the policy orchestrator.LimitHandOff. A turn with Wants.Agent gets no substitute.
func (r *Runner) Available(ctx context.Context, t orchestrator.Turn, who Choice) Choice {
	resting := r.opts.Breakers.Open(t.Sandbox, who.Agent, who.Account)
	limited := resting != nil && resting.Kind == cli.LimitReached
	if resting == nil || limited && r.opts.Settings().Limits != orchestrator.LimitHandOff || t.Again != "" {
		return who
	}
	other, ok := r.substitute(ctx, t, r.exhausted(ctx, t, []cli.Agent{who.Agent}))
	if !ok {
		return who
	}
	other.Instead = resting
	return other
}

// substitute returns a configured agent that may run a turn without asking the user. It never returns an agent in
// except. If there is no such agent, it returns false.
func (r *Runner) substitute(ctx context.Context, t orchestrator.Turn, except []cli.Agent) (Choice, bool) {
	other, configured := r.opts.Gateway.Substitute(ctx, t.Sandbox, r.accounts(ctx, t), except)
	if other == "" || !configured || t.Wants.Agent != "" || !t.Prompt.Rights.OfChat() {
		return Choice{}, false
	}
	own := r.opts.Settings().Agents[other]
	return Choice{Agent: other, Model: own.Model, Effort: own.Effort}, true
}

func (r *Runner) accounts(ctx context.Context, t orchestrator.Turn) cli.Accounts {
	// A group may have got a new ID while the turn ran, so load the conversation's ID again.
	stored, err := r.opts.Store.Turn(ctx, t.ID)
	var conv orchestrator.Conversation
	if err == nil {
		conv, err = r.opts.Store.Conversation(ctx, stored.Prompt.Conversation)
	}
	if err != nil {
		r.opts.Log.Warn("load the accounts of a conversation", "turn", string(t.ID), "err", err)
	}
	if t.Agent == "" {
		return conv.Settings.Accounts
	}
	return conv.Settings.Accounts.With(t.Agent, t.Entry.Account)
}

// exhausted lists the agents that must not get the turn now. An agent is in the list if its circuit breaker is open, or
// if it failed in this turn or in an earlier turn with the same prompt.
func (t *Turn) exhausted(ctx context.Context, agent cli.Agent) []cli.Agent {
	return t.runner.exhausted(ctx, t.turn, append([]cli.Agent{agent}, t.Events.Replaced()...))
}

func (r *Runner) exhausted(ctx context.Context, t orchestrator.Turn, failed []cli.Agent) []cli.Agent {
	for _, f := range r.opts.Breakers.All(t.Sandbox, r.accounts(ctx, t)) {
		failed = append(failed, f.Agent)
	}
	for id := t.Again; id != ""; {
		before, err := r.opts.Store.Turn(ctx, id)
		if err != nil || before.State != orchestrator.TurnFailed {
			break
		}
		failed, id = append(failed, before.Agent), before.Again
	}
	return failed
}

// automatic returns ductor's configured reaction to this kind of failure.
func (r *Runner) automatic(kind cli.FailureKind) orchestrator.Automatic {
	what := orchestrator.RemedyOf(kind).Automatic
	if what != orchestrator.AutomaticConfigured {
		return what
	}
	if r.opts.Settings().Limits == orchestrator.LimitHandOff {
		return orchestrator.AutomaticSubstitute
	}
	return orchestrator.AutomaticNothing
}

const pauseStep = 5 * time.Second

// pause waits before a retry. Meanwhile the card shows the remaining time. If the user stops the retries or aborts the
// turn, pause returns false. After an abort it also marks the result as aborted.
func (t *Turn) pause(result *cli.Result, retry int) bool {
	p, now, set := t.printer(), t.runner.opts.Now, t.runner.opts.Settings
	end := now().Add(set().RetryAfter << (retry - 1))
	for left := end.Sub(now()); left > 0; left = end.Sub(now()) {
		span := p.Span(left.Round(time.Second))
		why := p.Text("turn.retry-in", span, retry, set().Retries)
		if result.Err.Kind == cli.APIFailed {
			why = p.Text("turn.retry-failed", span, retry, set().Retries)
		}
		t.Events.Show(cli.Status{Kind: cli.StatusPaused, Detail: why})
		step := time.NewTimer(min(left, pauseStep))
		select {
		case <-step.C:
		case <-t.start.Retries.Done():
			step.Stop()
			if cause := context.Cause(t.ctx); errors.Is(cause, cli.ErrAborted) {
				*result = cli.Cut(t.ctx, t.turn.Agent)
			}
			return false
		}
	}
	t.Events.Show(cli.Status{Kind: cli.StatusIdle})
	return t.ctx.Err() == nil
}

// Failed returns the outcome of the turn after a failure. It contains the actions from which the user can choose.
func (t *Turn) Failed(f *cli.Failure) orchestrator.Outcome {
	p := t.printer()
	out := orchestrator.Outcome{
		State: orchestrator.TurnFailed, Agent: t.turn.Agent, Failure: f.Sentence(p), Recovery: t.recovery(f),
	}
	if f.Kind == cli.BadOutput {
		out.Recovery.Raw = f.Detail
	}
	if last, again := t.refusedBefore(f); again {
		key := lang.Key("turn.refused-again")
		if last.Prompt.HasPicture() || t.turn.Prompt.HasPicture() {
			key = "turn.picture-refused"
		}
		out.Failure += " " + p.Text(key)
	}
	ran, tools := t.Events.Ran()
	if ran && f.Kind == cli.TimedOut {
		out.Failure += " " + p.Text("turn.kept")
	}
	if tools > 0 {
		out.Failure += " " + p.Text("turn.ran", tools)
	}
	if f.Kind != cli.LimitReached || t.runner.opts.Settings().Limits != orchestrator.LimitWait || ran ||
		!out.Recovery.Offers(orchestrator.ActionLater) || !t.turn.Prompt.Rights.OfChat() {
		return out
	}
	if err := t.start.Conversation.RunLater(t.record, t.turn, out.Recovery.At); err != nil {
		t.log().Error("schedule a turn for the end of a usage limit", "err", err)
		return out
	}
	out.Failure += " " + p.Text("turn.runs-at", p.Clock(out.Recovery.At.Local(), t.runner.opts.Now()))
	out.Recovery.Offer = slices.DeleteFunc(out.Recovery.Offer, func(a orchestrator.Action) bool {
		return a == orchestrator.ActionLater
	})
	return out
}

// recovery returns the actions that the user can choose after a failure of this turn. RemedyOf lists the actions for
// the kind of failure; recovery leaves out those that are impossible for this turn.
func (t *Turn) recovery(f *cli.Failure) orchestrator.Recovery {
	o := &t.runner.opts
	out := orchestrator.Recovery{Kind: f.Kind}
	later := o.Later && f.ResetAt.After(o.Now()) && t.turn.MayRunLater()
	offer := orchestrator.RemedyOf(f.Kind).Offer
	if _, again := t.refusedBefore(f); again {
		offer = []orchestrator.Action{orchestrator.ActionFresh}
	}
	if f.Kind == cli.NotRun {
		offer = append(t.modeActions(), offer...)
	}
	for _, a := range offer {
		switch a {
		case orchestrator.ActionLater:
			if later {
				out.At, out.Offer = f.ResetAt, append(out.Offer, a)
			}
			out.Offer = append(out.Offer, t.accountActions(f)...)
			continue
		case orchestrator.ActionLogIn:
			of := orchestrator.AgentEnv{Agent: f.Agent, Account: t.accountOf(f.Agent), Sandbox: t.turn.Sandbox}
			if o.Owner == 0 || len(o.Gateway.Logins(of.Sandbox, of.Agent, of.Account)) == 0 {
				continue
			}
			out.Who = of.LogInID()
		case orchestrator.ActionDrop:
			if !later {
				continue
			}
		case orchestrator.ActionAgain:
			if later { // running the prompt now would fail, because the limit has not ended
				continue
			}
		case orchestrator.ActionHandOff:
			out.Other, _ = o.Gateway.Substitute(t.record, t.turn.Sandbox, t.runner.accounts(t.record, t.turn),
				t.exhausted(t.record, f.Agent))
			if out.Other == "" {
				continue
			}
		}
		out.Offer = append(out.Offer, a)
	}
	return out
}

// modeActions returns one action for each permission mode in which the agent could run the prompt. It returns none if
// the mode is not the reason why ductor did not run the agent. It omits bypass mode, which users must confirm.
func (t *Turn) modeActions() (actions []orchestrator.Action) {
	gateway, req := t.runner.opts.Gateway, t.start.Request
	if !t.turn.Prompt.Rights.OfChat() || gateway.CannotHold(t.turn.Agent, req) == "" {
		return nil
	}
	for _, mode := range cli.PermissionModes() {
		if t.turn.Prompt.Rights.ModeIn(mode, "") != mode {
			continue // the rights of the turn do not allow this mode
		}
		if req.Permission = mode; mode != cli.Bypass && gateway.CannotHold(t.turn.Agent, req) == "" {
			actions = append(actions, orchestrator.ActionMode(mode))
		}
	}
	return actions
}

// refusedBefore returns the previous turn of this session if both turns failed with cli.Refused, with the same agent.
// The session may then contain something that makes every prompt fail, such as a picture that the model's API cannot
// read. f is the failure of this turn.
func (t *Turn) refusedBefore(f *cli.Failure) (orchestrator.Turn, bool) {
	if f.Kind != cli.Refused || t.turn.Session == "" {
		return orchestrator.Turn{}, false
	}
	last, err := t.runner.opts.Store.History(t.record, t.turn.Session, 1)
	if err != nil {
		t.log().Warn("check whether the previous turn was refused", "err", err)
	}
	if len(last) == 0 || last[0].AgentEnv() != t.turn.AgentEnv() || last[0].Outcome.Recovery.Kind != cli.Refused {
		return orchestrator.Turn{}, false
	}
	return last[0], true
}
