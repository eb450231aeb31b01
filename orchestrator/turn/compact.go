package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// compact runs a turn that compacts the agent's context. The text of the result compares the size of the context before
// and after. Both sizes are measured like the size in /context. ductor does not use the sizes that agents report with a
// compaction, because they may leave out instructions and tools.
func (a *attempt) compact(run gatewayRun) cli.Result {
	r := a.runner
	var before cli.Fill
	if a.resumes {
		before = r.lastFill(a.record, a.start.Session.ID, a.turn.AgentEnv())
	} else {
		before = r.Fill(a.ctx, a.turn.Agent, a.req, "")
	}
	shortened := false
	result := a.runAgent(run, func(ev cli.Event) {
		if _, is := ev.(cli.CompactBoundary); is {
			shortened, ev = true, cli.CompactBoundary{}
		}
		a.event(ev)
	})
	switch {
	case result.Err != nil && errors.Is(result.Err, errors.ErrUnsupported):
		return a.compactAfresh()
	case result.Err != nil || result.Aborted || result.Detached:
		return result
	case !shortened: // the agent's text explains why it did not compact
		result.Err = &cli.Failure{Kind: cli.Refused, Agent: a.turn.Agent, Reason: cli.ShortLine(result.Text)}
		return result
	}
	if now, err := r.opts.Gateway.Fill(a.ctx, a.turn.Agent, a.req, ""); err == nil && now.Used > 0 {
		now.SpentUSD = result.Fill.SpentUSD
		result.Fill = now
	}
	result.Text = compactText(a.printer(), before, result.Fill)
	return result
}

// compactText describes the size of a context before and after a compaction. If the context seems to have grown, it
// shows only the new size, because the agent must have counted in two different ways.
func compactText(p lang.Printer, before, after cli.Fill) string {
	now := p.Tokens(after.Used)
	if percent, known := after.Percent(); known && percent > 0 {
		now = p.Text("turn.tokens-percent", now, percent)
	}
	switch {
	case after.Used == 0:
		return p.Text("turn.compacted-unknown")
	case before.Used <= after.Used:
		return p.Text("turn.compacted-now", now)
	}
	return p.Text("turn.compacted", p.Tokens(before.Used), now)
}

// summarizer returns a Summarizer for the turn, with the configured model or the turn's own agent. It returns nil if
// Options.Summarizer is nil.
func (a *attempt) summarizer() *handoff.Summarizer {
	configured := a.runner.opts.Summarizer
	if configured == nil {
		return nil
	}
	own := *configured
	if own.Model.Agent == "" {
		own.Model = orchestrator.ModelChoice{Agent: a.turn.Agent, Model: a.turn.Model}
	}
	return &own
}

// compactAfresh replaces compact for an agent that cannot compact its context. It deletes the agent session. With the
// next prompt, the agent gets a summary of the history in a new session.
func (a *attempt) compactAfresh() cli.Result {
	o, p := &a.runner.opts, a.printer()
	turns, err := o.Store.History(a.record, a.start.Session.ID, handoff.MostMissed)
	if err != nil {
		return cli.Result{Err: cli.AsFailure(a.turn.Agent, fmt.Errorf("load history: %w", err))}
	}
	turns = slices.DeleteFunc(turns, handoff.IsCompaction)
	told := handoff.Write(turns, "", o.Settings().HandoffTokens)
	if s := a.summarizer(); told.LeftOut > 0 && s != nil {
		s.Keep = a.turn.Prompt.Text
		told = a.summarize(s, turns, told, cli.Status{Kind: cli.StatusCompacting})
	}
	if a.ctx.Err() != nil {
		return cli.Cut(a.ctx, a.turn.Agent)
	}
	if err := o.Store.SetAgentSession(a.record, a.start.Session.ID, a.turn.AgentEnv(),
		orchestrator.AgentSession{}); err != nil {
		return cli.Result{Err: cli.AsFailure(a.turn.Agent, err)}
	}
	o.Gateway.Release(a.req.Conversation)
	text := p.Text("turn.compacted-afresh", told.Turns, p.Tokens(int64(told.Tokens)))
	if n := told.Whole(); n > 0 {
		text += " " + p.Text("turn.compacted-without", n)
	}
	return cli.Result{Text: text}
}

// filledLately is the number of turns, from the newest, in which lastFill looks for a context size.
const filledLately = 20

// lastFill returns the newest context size that an agent has reported after a turn of a session.
func (r *Runner) lastFill(ctx context.Context, id orchestrator.SessionID, who orchestrator.AgentEnv) cli.Fill {
	turns, err := r.opts.Store.History(ctx, id, filledLately)
	if err != nil {
		r.opts.Log.Warn("load the last size of a context", "session", id, "err", err)
	}
	for _, t := range slices.Backward(turns) {
		if t.AgentEnv() == who && t.Outcome.Fill.Used > 0 {
			return t.Outcome.Fill
		}
	}
	return cli.Fill{}
}

// Fill returns how full an agent's context is in the session of a request. If the agent cannot report that now, Fill
// returns what the agent last reported after a turn. The argument turn is the running turn, or empty if no turn is
// running.
func (r *Runner) Fill(ctx context.Context, who cli.Agent, req cli.Request, turn cli.TurnID) cli.Fill {
	now, err := r.opts.Gateway.Fill(ctx, who, req, turn)
	if err == nil && now.Used > 0 {
		return now
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.opts.Log.Info("an agent does not report its context", "agent", who, "err", err)
	}
	return r.lastFill(ctx, orchestrator.SessionID(req.Session), orchestrator.AgentEnv{
		Agent: who, Account: req.Accounts[who], Sandbox: req.Sandbox,
	})
}

// CheckOrder checks whether t may start. If t may run only after another turn has succeeded (Wants.After), and that turn
// did not succeed, the error is a *cli.Failure.
func (r *Runner) CheckOrder(ctx context.Context, t orchestrator.Turn) error {
	if t.Wants.After == "" {
		return nil
	}
	before, err := r.opts.Store.Turn(ctx, t.Wants.After)
	if err != nil {
		return fmt.Errorf("load the turn before: %w", err)
	}
	if before.State != orchestrator.TurnDone {
		return &cli.Failure{Kind: cli.ContextFull, Agent: before.Agent,
			Reason: r.opts.Lang.Of(t.Prompt.Conversation.Chat).Text("turn.not-shortened")}
	}
	return nil
}
