package conversation

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// followUps counts the attempts that followed failures of a turn.
type followUps struct {
	repeated    bool // by the same agent at once
	substituted bool // by another agent
	retries     int  // by the same agent after pauses
}

// followUp reports whether another attempt follows from the failure of a turn, and returns who makes it. Nothing of the turn ran then. It
// waits for the moment of a retry.
func (r *runningTurn) followUp(result *cli.Result, so *followUps) (who choice, ok bool) {
	e, t, f := r.e, r.turn, result.Err
	ran, _ := r.events.Ran()
	if f == nil || ran || result.Text != "" || r.ctx.Err() != nil || result.Aborted || result.Detached {
		return choice{}, false
	}
	same := choice{agent: t.Agent, model: t.Model}
	if conv, err := e.opts.Store.Conversation(r.keep, t.Prompt.Conversation); err == nil {
		same.effort = wanting(conv, t.Wants).Effort
	}
	switch e.automatic(f.Kind) {
	case orchestrator.AutomaticOnce:
		if so.repeated || result.Fallback || errors.Is(f, cli.ErrStale) || !e.opts.Breakers.MayRepeat(t.Sandbox, t.Agent) {
			return choice{}, false
		}
		so.repeated = true
		return same, true
	case orchestrator.AutomaticRetries:
		if so.retries >= e.turns().Retries || !e.opts.Breakers.MayRepeat(t.Sandbox, t.Agent) {
			return choice{}, false
		}
		so.retries++
		return same, r.pause(result, so.retries)
	case orchestrator.AutomaticSubstitute:
		other, ok := r.substitute(r.ctx, t.Agent)
		if so.substituted || !ok {
			return choice{}, false
		}
		so.substituted = true
		e.opts.Breakers.Ended(t.Sandbox, t.Agent, f)
		r.events.Show(cli.Substituted{By: other.agent, Why: f})
		return other, true
	}
	return choice{}, false
}

// around returns the configured substitute of an agent that ductor leaves alone for a while, if the turn may go to it: the turn did not
// name that agent. An agent that only reached its limit has a substitute if the configuration hands limits over.
func (r *runningTurn) around(who choice) choice {
	resting := r.e.opts.Breakers.Open(r.turn.Sandbox, who.agent)
	limited := resting != nil && resting.Kind == cli.LimitReached
	if resting == nil || limited && r.e.turns().Limits != orchestrator.LimitHandOff || r.turn.Again != "" {
		return who
	}
	other, ok := r.substitute(r.keep, who.agent)
	if !ok {
		return who
	}
	other.instead = resting
	return other
}

// substitute returns the configured agent that may run the turn in place of another without asking the user.
func (r *runningTurn) substitute(ctx context.Context, of cli.Agent) (choice, bool) {
	other, configured := r.e.opts.Gateway.Substitute(ctx, r.turn.Sandbox, r.exhausted(ctx, of))
	if other == "" || !configured || r.turn.Wants.Agent != "" || !r.turn.Prompt.Rights.OfChat() {
		return choice{}, false
	}
	own := r.e.turns().Agents[other]
	return choice{agent: other, model: own.Model, effort: own.Effort}, true
}

// exhausted lists the agents that do not get the turn: the agent that just failed, those that failed in this turn or in the turns that it
// repeats, and those that ductor leaves alone for a while.
func (r *runningTurn) exhausted(ctx context.Context, agent cli.Agent) []cli.Agent {
	all := append([]cli.Agent{agent}, r.events.Replaced()...)
	for _, f := range r.e.opts.Breakers.All(r.turn.Sandbox) {
		all = append(all, f.Agent)
	}
	for id := r.turn.Again; id != ""; {
		before, err := r.e.opts.Store.Turn(ctx, id)
		if err != nil || before.State != orchestrator.TurnFailed {
			break
		}
		all, id = append(all, before.Agent), before.Again
	}
	return all
}

// automatic says what follows a kind of failure without asking, as it is configured.
func (e *Engine) automatic(kind cli.FailureKind) orchestrator.Automatic {
	what := orchestrator.RemedyOf(kind).Automatic
	if what != orchestrator.AutomaticConfigured {
		return what
	}
	if e.turns().Limits == orchestrator.LimitHandOff {
		return orchestrator.AutomaticSubstitute
	}
	return orchestrator.AutomaticNothing
}

// pauseStep is how often a card says how long a pause still lasts.
const pauseStep = 5 * time.Second

// pause waits before a retry, and shows for how long. It returns false if the turn ends instead: a user aborted it, and the result becomes
// an abort, or a user wants no more retries.
func (r *runningTurn) pause(result *cli.Result, retry int) bool {
	e, p := r.e, r.printer()
	wanted := r.c.running.Load().retries
	end := e.now().Add(e.turns().RetryAfter << (retry - 1))
	for left := end.Sub(e.now()); left > 0; left = end.Sub(e.now()) {
		span := p.Span(left.Round(time.Second))
		why := p.Text("turn.retry-in", span, retry, e.turns().Retries)
		if result.Err.Kind == cli.APIFailed {
			why = p.Text("turn.retry-failed", span, retry, e.turns().Retries)
		}
		r.events.Show(cli.Status{Kind: cli.StatusPaused, Detail: why})
		step := time.NewTimer(min(left, pauseStep))
		select {
		case <-step.C:
		case <-wanted.Done():
			step.Stop()
			if cause := context.Cause(r.ctx); errors.Is(cause, cli.ErrAborted) {
				*result = cli.Cut(r.ctx, r.turn.Agent)
			}
			return false
		}
	}
	r.events.Show(cli.Status{Kind: cli.StatusIdle})
	return r.ctx.Err() == nil
}

// failed returns the outcome of the turn after a failure, and what a user can do about it.
func (r *runningTurn) failed(f *cli.Failure) orchestrator.Outcome {
	e, t, p := r.e, r.turn, r.printer()
	out := orchestrator.Outcome{State: orchestrator.TurnFailed, Agent: t.Agent, Failure: f.Sentence(p), Recovery: r.recovery(f)}
	if f.Kind == cli.BadOutput {
		out.Recovery.Raw = f.Detail
	}
	if f.Kind == cli.Refused && out.Recovery.Offers(orchestrator.ActionFresh) {
		out.Failure += " " + p.Text("turn.refused-again")
	}
	ran, tools := r.events.Ran()
	if ran && f.Kind == cli.TimedOut {
		out.Failure += " " + p.Text("turn.kept")
	}
	if tools > 0 {
		out.Failure += " " + p.Text("turn.ran", tools)
	}
	if f.Kind != cli.LimitReached || e.turns().Limits != orchestrator.LimitWait || ran ||
		!out.Recovery.Offers(orchestrator.ActionLater) || !t.Prompt.Rights.OfChat() {
		return out
	}
	if _, err := e.later(r.keep, t, out.Recovery.At, ""); err != nil {
		r.log().Error("have a turn run when the limit of its agent ends", "err", err)
		return out
	}
	out.Failure += " " + p.Text("turn.runs-at", p.Clock(out.Recovery.At.Local(), e.now()))
	out.Recovery.Offer = []orchestrator.Action{orchestrator.ActionDrop}
	return out
}

// recovery returns what a user can do about a failure of the turn: the actions that its kind offers, without those that this turn does not
// allow.
func (r *runningTurn) recovery(f *cli.Failure) orchestrator.Recovery {
	e, t := r.e, r.turn
	out := orchestrator.Recovery{Kind: f.Kind}
	later := e.opts.Jobs != nil && f.ResetAt.After(e.now()) && !orchestrator.IsJobTurn(t.ID)
	offer := orchestrator.RemedyOf(f.Kind).Offer
	if f.Kind == cli.Refused && e.refusedBefore(r.keep, t) {
		offer = []orchestrator.Action{orchestrator.ActionFresh}
	}
	for _, a := range offer {
		switch a {
		case orchestrator.ActionLater:
			if !later {
				continue
			}
			out.At = f.ResetAt
		case orchestrator.ActionLogIn:
			if e.opts.Owner == 0 || !e.opts.Gateway.CanLogIn(t.Sandbox, f.Agent) {
				continue
			}
			out.Who = f.Agent
		case orchestrator.ActionDrop:
			if !later {
				continue
			}
		case orchestrator.ActionAgain:
			if later { // it would fail
				continue
			}
		case orchestrator.ActionHandOff:
			if out.Other, _ = e.opts.Gateway.Substitute(r.keep, t.Sandbox, r.exhausted(r.keep, f.Agent)); out.Other == "" {
				continue
			}
		}
		out.Offer = append(out.Offer, a)
	}
	return out
}

// refusedBefore reports whether the turn before t in its session was refused too, by the same agent: something in the session, such as a
// picture that the model's API cannot read, may have every prompt refused.
func (e *Engine) refusedBefore(ctx context.Context, t orchestrator.Turn) bool {
	if t.Session == "" {
		return false
	}
	last, err := e.opts.Store.History(ctx, t.Session, 1)
	if err != nil {
		e.log.Warn("look up whether the turn before was refused", "turn", t.ID, "err", err)
	}
	return len(last) > 0 && last[0].AgentEnv() == t.AgentEnv() && last[0].Outcome.Recovery.Kind == cli.Refused
}

// loginWait is how long a code that logs an agent in is waited for; the agents' own codes expire then too.
const loginWait = 15 * time.Minute

// logIn logs the agent of a turn in. The owner gets the code in the private chat, and how that ended.
func (e *Engine) logIn(ctx context.Context, t orchestrator.Turn) error {
	agent, in, p := t.Outcome.Recovery.Who, t.Sandbox, e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	if agent == "" || e.opts.Owner == 0 || !e.opts.Gateway.CanLogIn(in, agent) {
		return orchestrator.ErrBadChoice
	}
	if _, runs := e.logins.LoadOrStore(orchestrator.AgentEnv{Agent: agent, Sandbox: in}, true); runs {
		return nil
	}
	if !e.open() {
		return orchestrator.ErrShutdown
	}
	owner := orchestrator.ConversationID{Chat: int64(e.opts.Owner)}
	tell := func(text string) {
		if err := e.opts.Chat.Notice(context.WithoutCancel(ctx), owner, text); err != nil {
			e.log.Warn("tell the owner about a log-in", "agent", agent, "err", err)
		}
	}
	go func() {
		defer e.wg.Done()
		defer e.logins.Delete(orchestrator.AgentEnv{Agent: agent, Sandbox: in})
		ctx, cancel := context.WithTimeout(e.life, loginWait)
		defer cancel()
		err := e.opts.Gateway.LogIn(ctx, in, agent, func(d cli.DeviceCode) { tell(p.Text("turn.log-in", d.Agent.Name(), d.URL, d.Code)) })
		switch {
		case err == nil:
			tell(p.Text("turn.logged-in", agent.Name()))
		case e.life.Err() == nil:
			e.log.Warn("log an agent in", "agent", agent, "err", err)
			tell(p.Text("turn.not-logged-in", agent.Name(), cli.ShortLine(err.Error())))
		}
	}()
	return nil
}
