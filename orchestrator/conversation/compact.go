package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/spending"
)

// Compact has the agent of a conversation shorten its context, in a turn of its own. hint says what to keep and may be empty. An
// agent that does not do that gets a new session, which is told the history in short.
func (e *Engine) Compact(ctx context.Context, hint string, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	p.Text = hint
	return e.enqueue(ctx, e.compaction(orchestrator.Turn{Prompt: p}))
}

// compaction makes a turn one that shortens a context.
func (e *Engine) compaction(t orchestrator.Turn) orchestrator.Turn {
	t.Wants.Task, t.Wants.Title = cli.TaskCompact, e.opts.Lang.Of(t.Prompt.Conversation.Chat).Text("turn.compact-title")
	return t
}

// isCompaction says whether a turn only shortened a context: nothing was said in it.
func isCompaction(t orchestrator.Turn) bool { return t.Wants.Task == cli.TaskCompact }

// compactFirst runs the prompt of a turn once more, after a turn that shortens the context, if that goes well.
func (e *Engine) compactFirst(ctx context.Context, t orchestrator.Turn, wants orchestrator.Wants, by orchestrator.Press) (orchestrator.Receipt, error) {
	if err := e.opts.Store.Unrepeated(ctx, t.ID); err != nil {
		return orchestrator.Receipt{}, err
	}
	p := orchestrator.Prompt{Conversation: by.Conversation, Person: by.Person, Message: t.Prompt.Message, Rights: t.Prompt.Rights}
	shorter := orchestrator.Turn{Prompt: p, Session: t.Session, Wants: orchestrator.Wants{Agent: wants.Agent, Model: wants.Model, Effort: wants.Effort}}
	receipt, err := e.enqueue(ctx, e.compaction(shorter))
	if err != nil || receipt.Full {
		return receipt, err
	}
	wants.After = receipt.Turn
	return e.repeat(ctx, t, wants, by)
}

// afterOther returns a Failure if the turn before, which t needs, did not go well.
func (e *Engine) afterOther(ctx context.Context, t orchestrator.Turn) error {
	if t.Wants.After == "" {
		return nil
	}
	before, err := e.opts.Store.Turn(ctx, t.Wants.After)
	if err != nil {
		return fmt.Errorf("load the turn before: %w", err)
	}
	if before.State != orchestrator.TurnDone {
		return &cli.Failure{Kind: cli.ContextFull, Agent: before.Agent, Reason: e.opts.Lang.Of(t.Prompt.Conversation.Chat).Text("turn.not-shortened")}
	}
	return nil
}

// compact runs a turn that shortens the context. Its result says how full the context was and is. Both are what /context says, since what
// an agent counts of a compaction may lack its instructions and tools.
func (a *attempt) compact(run gatewayRun) cli.Result {
	e, t := a.e, a.turn
	var before cli.Fill
	if a.resumes {
		before = e.lastFill(a.keep, a.session.ID, t.AgentEnv())
	} else {
		before = e.fill(a.ctx, a.session.ID, t.Agent, a.req, "")
	}
	shortened := false
	r := a.call(run, func(ev cli.Event) {
		if _, is := ev.(cli.CompactBoundary); is {
			shortened, ev = true, cli.CompactBoundary{}
		}
		a.event(ev)
	})
	switch {
	case r.Err != nil && errors.Is(r.Err, errors.ErrUnsupported):
		return a.compactAfresh()
	case r.Err != nil || r.Aborted || r.Detached:
		return r
	case !shortened: // its text says why
		r.Err = cli.Failf(cli.Refused, t.Agent, "%s", cli.ShortLine(r.Text))
		return r
	}
	if now, err := e.opts.Gateway.Fill(a.ctx, t.Agent, a.req, ""); err == nil && now.Used > 0 {
		r.Fill = now
	}
	r.Text = shorter(a.printer(), before, r.Fill)
	return r
}

// shorter says how full a context was and is. If it seems to have grown, an agent counts the two in different ways.
func shorter(p lang.Printer, before, after cli.Fill) string {
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

// summarizer returns a Summarizer of its own for the turn: by the configured model, or else by the agent of the turn. It is nil if none is
// configured.
func (e *Engine) summarizer(t orchestrator.Turn) *handoff.Summarizer {
	if e.opts.Summarizer == nil {
		return nil
	}
	own := *e.opts.Summarizer
	if own.Model.Agent == "" {
		own.Model = orchestrator.ModelChoice{Agent: t.Agent, Model: t.Model}
	}
	return &own
}

// compactAfresh forgets the agent's session: the next prompt begins a new one, which gets the history in short.
func (a *attempt) compactAfresh() cli.Result {
	e, t, p := a.e, a.turn, a.printer()
	turns, err := e.opts.Store.History(a.keep, a.session.ID, mostMissed)
	if err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, fmt.Errorf("load history: %w", err))}
	}
	turns = slices.DeleteFunc(turns, isCompaction)
	told := handoff.Write(turns, "", e.turns().HandoffTokens)
	if s := e.summarizer(t); told.LeftOut > 0 && s != nil {
		s.Keep = t.Prompt.Text
		told = a.summarize(s, turns, told, cli.Status{Kind: cli.StatusCompacting})
	}
	if a.ctx.Err() != nil {
		return cli.Cut(a.ctx, t.Agent)
	}
	if err := e.opts.Store.SetAgentSession(a.keep, a.session.ID, t.AgentEnv(), ""); err != nil {
		return cli.Result{Err: cli.AsFailure(t.Agent, err)}
	}
	e.opts.Gateway.Release(a.req.Conversation)
	text := p.Text("turn.compacted-afresh", told.Turns, p.Tokens(int64(told.Tokens)))
	if n := told.Whole(); n > 0 {
		text += " " + p.Text("turn.compacted-without", n)
	}
	return cli.Result{Text: text}
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
	r.Fill = e.fill(ctx, r.Session.ID, who, req, turn)
	return r, nil
}

// fill is how full the context of an agent in a session is: as the agent says now, or else as it said after a turn.
func (e *Engine) fill(ctx context.Context, id orchestrator.SessionID, who cli.Agent, req cli.Request, turn cli.TurnID) cli.Fill {
	now, err := e.opts.Gateway.Fill(ctx, who, req, turn)
	if err == nil && now.Used > 0 {
		return now
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		e.log.Info("an agent does not say what fills its context", "agent", who, "err", err)
	}
	return e.lastFill(ctx, id, orchestrator.AgentEnv{Agent: who, Sandbox: req.Sandbox})
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
