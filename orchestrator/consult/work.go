package consult

import (
	"context"
	"math"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// Works contains functions that Engine.Work needs. All fields are required.
type Works struct {
	// AskFor is orchestrator.ActiveTurns.AskFor.
	AskFor func(ctx context.Context, turn cli.TurnID, h orchestrator.Helper, asked cli.Event) (cli.Decision, error)
	// Decide is orchestrator.Gateway.Decide.
	Decide func(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error
	// Audit adds entries to the audit log.
	Audit func(ctx context.Context, entries ...orchestrator.AuditEntry) error
}

const workInstructions = "Another agent has you work on a task for its user, and gets your last answer. " +
	"Do the task, and no more than it. You cannot ask that agent anything. " +
	"End with a short report: what you did, which files you changed, how you checked it, and what is open. " +
	"If the report has more than a few pages, end it with a summary in <SUMMARY></SUMMARY>."

// Work runs another agent for a running turn, with the turn's rights and directory. It returns the agent's report. A
// rule of the conversation, or a user who may decide requests of the turn, decides the agent's requests for permission.
// Work stops when ctx is done, when the turn ends, and when Abort or Close is called. It returns the same errors as
// Ask.
func (e *Engine) Work(ctx context.Context, w orchestrator.Work) (orchestrator.ConsultAnswer, error) {
	ctx, leave, err := w.For.Help(ctx)
	if err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	defer leave()
	if err := e.opts.CheckDir(w.For.Request.Dir); err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.For.Life, func() { cancel(context.Cause(w.For.Life)) })()
	w.Conversation, w.Person = w.For.Turn.Prompt.Conversation, w.For.Turn.Prompt.Person
	told := workInstructions
	if w.Instructions != "" {
		told = w.Instructions + "\n\n" + told
	}
	return e.askAside(ctx, workRequest(w), w.ConsultQuestion, approach{
		kind: orchestrator.WorkEntry, role: w.Role, instructions: told, upTo: math.MaxInt64,
		ask: func(ctx context.Context, at cli.Request, q side.Question) (cli.Result, error) {
			return e.work(ctx, at, *w.For, q)
		}})
}

// workRequest returns a request with the rights of the running turn, with one exception: if the turn has a bypass with
// a time limit, the mode of the request is ask, because the agent may still be working after the time limit.
func workRequest(w orchestrator.Work) cli.Request {
	of := w.For.Request
	at := placeOf(of)
	at.Permission, at.Attended, at.AllowedTools, at.MaxTurns = of.Permission, of.Attended, of.AllowedTools, of.MaxTurns
	at.ToolLists = append(at.ToolLists, w.Tools...)
	if at.Permission == cli.Bypass && at.Attended {
		at.Permission = cli.Ask
	}
	return at
}

func (e *Engine) work(ctx context.Context, at cli.Request, turn orchestrator.ActiveTurn, q side.Question) (cli.Result,
	error) {
	at.Turn = cli.TurnID(e.opts.Side.NewID())
	h := &helper{
		e: e, turn: turn, work: at.Turn, who: orchestrator.Helper{Agent: q.Model.Agent, ToolLists: at.ToolLists},
		asking: map[cli.ApprovalID]context.CancelFunc{},
		trail: e.trail(orchestrator.AuditEntry{
			Conversation: turn.Turn.Prompt.Conversation, Turn: turn.Turn.ID, Call: cli.ToolID(at.Turn),
			Agent: q.Model.Agent,
			Rule:  string(at.Permission),
		}, turn.Hide),
	}
	ctx, cancel := context.WithCancel(ctx)
	h.life = ctx
	defer h.wg.Wait()
	defer cancel()
	q.Watch = both(q.Watch, h.observe)
	return e.opts.Side.Work(ctx, at, q)
}

// helper handles the permission requests of an agent that works for a turn.
type helper struct {
	e    *Engine
	turn orchestrator.ActiveTurn
	work cli.TurnID
	who  orchestrator.Helper
	life context.Context

	wg     sync.WaitGroup                        // goroutines that wait for a user's decision
	asking map[cli.ApprovalID]context.CancelFunc // used only by the goroutine that reads the agent's output
	trail  *trail
}

func (h *helper) observe(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		id := ev.ID
		if ev.Started != "" {
			ev.Started = h.trail.callID(ev.Started)
		}
		h.ask(id, ev)
	case cli.QuestionAsked:
		h.ask(ev.ID, ev)
	case cli.ApprovalWithdrawn:
		if giveUp := h.asking[ev.ID]; giveUp != nil {
			giveUp()
			delete(h.asking, ev.ID)
		}
	default:
		h.trail.observe(ev)
	}
}

// undecided is the reason that the agent gets if its request could not be shown to a user.
const undecided = "No user can be asked any more, so it was denied."

// ask asks the users of the turn to decide a request. It does not wait for the decision, because the caller must
// continue to read the agent's output.
func (h *helper) ask(id cli.ApprovalID, asked cli.Event) {
	ctx, giveUp := context.WithCancel(h.life)
	h.asking[id] = giveUp
	h.wg.Go(func() {
		defer giveUp()
		d, err := h.e.opts.Works.AskFor(ctx, h.turn.Turn.ID, h.who, asked)
		if ctx.Err() != nil {
			return // the agent has withdrawn the request
		}
		if err != nil {
			h.e.opts.Logger.Error("ask a user for a helper agent; its request is denied", "turn", h.turn.Turn.ID,
				"agent", h.who.Agent, "err", err)
			d = cli.Decision{Reason: undecided}
		}
		if err := h.e.opts.Works.Decide(ctx, h.work, id, d); err != nil && ctx.Err() == nil {
			h.e.opts.Logger.Error("deliver a decision to a helper agent", "turn", h.turn.Turn.ID, "agent", h.who.Agent,
				"err", err)
		}
	})
}
