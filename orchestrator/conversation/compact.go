package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/spending"
)

// Compact has the agent of a conversation shorten its context, in a turn of its own. hint says what to keep and may be empty. An
// agent that does not do that gets a new session, which is told the history in short.
func (e *Engine) Compact(ctx context.Context, hint string, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	p.Text = hint
	return e.enqueue(ctx, orchestrator.Turn{Prompt: p, Wants: orchestrator.Wants{Purpose: orchestrator.Purpose{Task: cli.TaskCompact}, Title: e.opts.Lang.Of(p.Conversation.Chat).Text("turn.compact-title")}})
}

// isCompaction says whether a turn only shortened a context: nothing was said in it.
func isCompaction(t orchestrator.Turn) bool { return t.Wants.Task == cli.TaskCompact }

// compactFirst runs the prompt of a turn once more, after a turn that shortens the context.
func (e *Engine) compactFirst(ctx context.Context, t orchestrator.Turn, wants orchestrator.Wants, by orchestrator.Press) (orchestrator.Receipt, error) {
	if err := e.opts.Store.Unrepeated(ctx, t.ID); err != nil {
		return orchestrator.Receipt{}, err
	}
	p := orchestrator.Prompt{Conversation: by.Conversation, Person: by.Person, Message: t.Prompt.Message, Rights: t.Prompt.Rights}
	receipt, err := e.Compact(ctx, "", p)
	if err != nil || receipt.Full {
		return receipt, err
	}
	return e.repeat(ctx, t, wants, by)
}

// compacted is the result of a turn that shortens the context, with what it says: how full the context was and is.
func (e *Engine) compacted(ctx, keep context.Context, a asking, t orchestrator.Turn, req cli.Request, show func(cli.Event), shortened *cli.CompactBoundary, r cli.Result) cli.Result {
	if r.Err != nil && errors.Is(r.Err, errors.ErrUnsupported) {
		return e.compactAfresh(ctx, keep, a, t, req, show)
	}
	if r.Err != nil || r.Aborted || r.Detached || shortened == nil { // then the agent says why it did nothing
		return r
	}
	p, before := e.opts.Lang.Of(t.Prompt.Conversation.Chat), int64(shortened.PreTokens)
	if before == 0 {
		before = e.lastFill(keep, a.session.ID, t.AgentEnv()).Used
	}
	now := p.Tokens(r.Fill.Used)
	if percent, known := r.Fill.Percent(); known {
		now = p.Text("turn.tokens-percent", now, percent)
	}
	switch {
	case r.Fill.Used == 0:
		r.Text = p.Text("turn.compacted-unknown")
	case before == 0:
		r.Text = p.Text("turn.compacted-now", now)
	default:
		r.Text = p.Text("turn.compacted", p.Tokens(before), now)
	}
	return r
}

// compactAfresh has the agent begin a new session with the next prompt, which is told the history in short.
func (e *Engine) compactAfresh(ctx, keep context.Context, a asking, t orchestrator.Turn, req cli.Request, show func(cli.Event)) cli.Result {
	p := e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	turns, err := e.opts.Store.History(keep, a.session.ID, mostMissed)
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, fmt.Errorf("load history: %w", err))}
	}
	turns = slices.DeleteFunc(turns, isCompaction)
	told, err := handoff.Write(turns, "", e.turns().HandoffTokens), error(nil)
	if told.LeftOut > 0 && e.opts.Summarizer != nil {
		show(cli.Status{Kind: cli.StatusCompacting})
		told, err = e.opts.Summarizer.Write(ctx, req, a.session.ID, turns, e.turns().HandoffTokens)
		show(cli.Status{Kind: cli.StatusIdle})
	}
	if ctx.Err() != nil {
		return cli.Cut(ctx, t.Agent)
	}
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	if err := e.opts.Store.SetAgentSession(keep, a.session.ID, t.AgentEnv(), ""); err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	e.opts.Gateway.Release(req.Conversation)
	return cli.Result{Text: p.Text("turn.compacted-afresh", told.Turns, p.Tokens(int64(told.Tokens)))}
}

// filledLately is how many turns back is looked for what an agent said of its context.
const filledLately = 20

// lastFill is how full the context of an agent was after its last turn in a session that said so.
func (e *Engine) lastFill(ctx context.Context, id orchestrator.SessionID, who orchestrator.AgentEnv) cli.Fill {
	turns, err := e.opts.Store.History(ctx, id, filledLately)
	if err != nil {
		e.log.Warn("look up how full a context was", "session", id, "err", err)
	}
	for _, t := range slices.Backward(turns) {
		if t.AgentEnv() == who && t.Outcome.Fill.Used > 0 {
			return t.Outcome.Fill
		}
	}
	return cli.Fill{}
}

// Context says how full the context of a conversation's agent is, as far as the agent says.
func (e *Engine) Context(ctx context.Context, in orchestrator.ConversationID) (orchestrator.ContextReport, error) {
	who, req, turn, err := e.atHand(ctx, in)
	if err != nil {
		return orchestrator.ContextReport{}, err
	}
	r := orchestrator.ContextReport{Agent: who, Model: req.Model}
	if req.Session == "" {
		return r, nil
	}
	if r.Session, err = e.opts.Store.Session(ctx, orchestrator.SessionID(req.Session)); err != nil {
		return r, fmt.Errorf("load session: %w", err)
	}
	if req.Resume == "" {
		return r, nil
	}
	r.Fill = e.lastFill(ctx, r.Session.ID, orchestrator.AgentEnv{Agent: who, Sandbox: req.Sandbox})
	now, err := e.opts.Gateway.Fill(ctx, who, req, turn)
	switch {
	case err == nil && now.Used > 0:
		r.Fill = now
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		e.log.Info("an agent does not say what fills its context", "agent", who, "err", err)
	}
	return r, nil
}

// AgentCommands lists the commands and skills of the agent of a conversation. errors.ErrUnsupported for one that has none.
func (e *Engine) AgentCommands(ctx context.Context, in orchestrator.ConversationID) (cli.Agent, []cli.AgentCommand, error) {
	who, req, turn, err := e.atHand(ctx, in)
	if err != nil {
		return "", nil, err
	}
	list, err := e.opts.Gateway.Commands(ctx, who, req, turn)
	if err != nil {
		return who, nil, fmt.Errorf("list the commands of an agent: %w", err)
	}
	return who, list, nil
}

// RunCommand has the agent of a conversation do one of its own commands, in a turn of its own.
func (e *Engine) RunCommand(ctx context.Context, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	return e.enqueue(ctx, orchestrator.Turn{Prompt: p, Wants: orchestrator.Wants{Purpose: orchestrator.Purpose{Task: cli.TaskCommand}}})
}

// atHand is the agent that a conversation talks to: the one whose turn runs, or that of its next turn.
func (e *Engine) atHand(ctx context.Context, in orchestrator.ConversationID) (cli.Agent, cli.Request, cli.TurnID, error) {
	who, req, err := e.next(ctx, in)
	if err != nil {
		return "", req, "", err
	}
	if now, err := e.ActiveTurn(in, who); err == nil {
		return who, req, now.ID, nil
	}
	return who, req, "", nil
}

// spender is who a turn is counted for.
func spender(t orchestrator.Turn) spending.Spender {
	return spending.Spender{Person: t.Prompt.Person, Job: t.Wants.Job}
}

// withinBudget is what a turn may cost, 0 where nothing limits it; a *cli.Failure if a budget is spent.
func (e *Engine) withinBudget(ctx context.Context, t orchestrator.Turn) (float64, error) {
	if e.opts.Budgets == nil {
		return 0, nil
	}
	return e.opts.Budgets.Left(ctx, e.opts.Lang.Of(t.Prompt.Conversation.Chat), spender(t))
}

// liftBudgets has an owner lift all budgets for today, and runs the prompt of a turn once more.
func (e *Engine) liftBudgets(ctx context.Context, t orchestrator.Turn, wants orchestrator.Wants, by orchestrator.Press) (orchestrator.Receipt, error) {
	if e.opts.Budgets == nil {
		return orchestrator.Receipt{}, orchestrator.ErrBadChoice
	}
	if !by.May(orchestrator.LiftBudgets) {
		return orchestrator.Receipt{}, orchestrator.ErrNotOwner
	}
	if err := e.opts.Budgets.Lift(ctx, by.Person); err != nil {
		return orchestrator.Receipt{}, err
	}
	return e.repeat(ctx, t, wants, by)
}

// warnOfBudgets tells a chat, once in each period, that most of a budget is spent.
func (e *Engine) warnOfBudgets(ctx context.Context, t orchestrator.Turn) {
	if e.opts.Budgets == nil {
		return
	}
	for _, text := range e.opts.Budgets.Warnings(ctx, e.opts.Lang.Of(t.Prompt.Conversation.Chat), spender(t)) {
		if err := e.opts.Chat.Notice(ctx, t.Prompt.Conversation, text); err != nil {
			e.log.Error("warn of a budget", "chat", t.Prompt.Conversation.Chat, "err", err)
		}
	}
}
