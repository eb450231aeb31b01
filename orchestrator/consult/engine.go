package consult

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/side"
	"ductor/orchestrator/steps"
)

// Options configures an Engine. All fields are required.
type Options struct {
	Side  side.Client
	Store orchestrator.ConsultStore
	// Session returns the session to which a question belongs. It creates the session if necessary.
	Session func(ctx context.Context, q orchestrator.ConsultQuestion) (orchestrator.Session, error)
	Names   orchestrator.SessionNames
	// SideRequest returns a request without a prompt, with the environment and the directory that the conversation's
	// next turn would use.
	SideRequest func(ctx context.Context, in orchestrator.ConversationID) (cli.Request, error)
	CheckDir    func(dir string) error // returns an error if no agent may work in a turn's directory any more
	Budget      func() int             // maximum number of tokens of history in a question
	Shorten     side.Shortener
	Works       Works
	Now         func() time.Time
	Logger      *slog.Logger
}

// DefaultWait is the time limit of a question without ConsultQuestion.Wait.
const (
	DefaultWait = 10 * time.Minute
	mostAtOnce  = 8 // maximum number of agents that answer questions of one conversation at the same time
)

// Engine asks models the questions of users and agents. It is safe for concurrent use.
type Engine struct {
	opts Options

	mu     sync.Mutex
	asking map[*question]bool
	closed bool
	wg     sync.WaitGroup
}

// question is a question that is not answered yet. Several agents answer a group question.
type question struct {
	// conversation changes if a group becomes a supergroup. Engine.mu guards it.
	conversation orchestrator.ConversationID
	running      int // number of agents that are answering now; 0 before the first agent and between two agents
	lanes        map[lane]bool
	cancel       context.CancelCauseFunc
}

// lane identifies the agent session that an agent uses inside a session of ductor. Two questions must not use the same
// agent session at the same time.
type lane struct {
	session orchestrator.SessionID
	of      orchestrator.AgentEnv
}

type questionKey struct{}

var _ orchestrator.Consults = (*Engine)(nil)

// New creates an Engine. The caller must call Close when ductor ends.
func New(o Options) *Engine {
	return &Engine{opts: o, asking: map[*question]bool{}}
}

// Ask implements orchestrator.Consults.
func (e *Engine) Ask(ctx context.Context, q orchestrator.ConsultQuestion) (orchestrator.ConsultAnswer, error) {
	return e.consult(ctx, q, approach{upTo: math.MaxInt64})
}

// consult asks an agent that may only read files.
func (e *Engine) consult(ctx context.Context, q orchestrator.ConsultQuestion,
	by approach) (orchestrator.ConsultAnswer, error) {
	q.Conversation = e.currentID(ctx, q.Conversation)
	at, err := e.place(ctx, q)
	if err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	by.kind, by.instructions = orchestrator.ConsultationEntry, instructions
	by.ask = func(ctx context.Context, at cli.Request, put side.Question) (cli.Result, error) {
		if !side.ReadsFiles(put.Model.Agent) {
			put.Instructions = withoutFiles
		}
		put.Asks, put.Watch = q.AskingTurn(), both(put.Watch, e.trail(orchestrator.AuditEntry{
			Conversation: q.Conversation, Turn: q.AskingTurn(), Call: cli.ToolID(e.opts.Side.NewID()),
			Agent: put.Model.Agent,
			Rule:  string(cli.Plan),
		}, e.secrets(at.Dir).String).observe)
		return e.opts.Side.Ask(ctx, at, put)
	}
	return e.askAside(ctx, at, q, by)
}

func (e *Engine) secrets(dir string) *secrets.Set {
	if e.opts.Side.Secrets == nil {
		return nil
	}
	return e.opts.Side.Secrets(dir)
}

func both(first, second func(cli.Event)) func(cli.Event) {
	return func(ev cli.Event) {
		first(ev)
		second(ev)
	}
}

// approach configures how an agent is asked. It depends on whether the agent answers a single question, answers a group
// question, or works for a turn.
type approach struct {
	kind         orchestrator.EntryKind
	role         string // name of the agent's role, or empty
	instructions string
	ask          func(ctx context.Context, at cli.Request, q side.Question) (cli.Result, error)
	fresh        bool         // whether to start a new agent session, which later questions do not continue
	upTo         int64        // the agent gets only entries up to this number as history
	quoted       []cli.TurnID // entries that are not in the history, because otherAnswers contains their text
	otherAnswers string       // answers of other models; sent after the question, but not stored with it
}

// asking contains a question for one agent. The field entry is the session entry that will store the question and the
// answer.
type asking struct {
	orchestrator.ConsultQuestion
	by      approach
	at      cli.Request
	session orchestrator.Session
	entry   orchestrator.Turn
	leftOut int // number of entries that the agent did not get in full
	hidden  *secrets.Set
	steps   steps.Recorder
}

func (r *asking) record(ev cli.Event) {
	if ended, is := ev.(cli.ToolEnded); is { // remove terminal color codes first, because they could split a secret
		ended.Output, ended.Err = cli.WithoutCodes(ended.Output), cli.WithoutCodes(ended.Err)
		ev = ended
	}
	clean, _ := secrets.Clean(r.hidden, ev)
	r.steps.Observe(clean)
}

// askAside asks an agent, and stores the question and the answer as an entry of the session.
func (e *Engine) askAside(ctx context.Context, at cli.Request, q orchestrator.ConsultQuestion,
	by approach) (a orchestrator.ConsultAnswer, err error) {
	began := e.opts.Now()
	r := &asking{ConsultQuestion: q, by: by, at: at, hidden: e.secrets(at.Dir),
		steps: steps.Recorder{Now: e.opts.Now}}
	if r.session, err = e.opts.Session(ctx, q); err != nil {
		return a, err
	}
	if r.Model, err = e.modelOf(ctx, q, r.session.ID, by.kind); err != nil {
		return a, err
	}
	r.at.Session = string(r.session.ID)
	r.entry = orchestrator.Turn{
		ID: cli.TurnID(e.opts.Side.NewID()), Session: r.session.ID,
		Entry: orchestrator.Entry{Kind: by.kind, Role: by.role, Account: at.Accounts[r.Model.Agent],
			Asks: q.AskingTurn()},
		Prompt: orchestrator.Prompt{Conversation: q.Conversation, Person: q.Person, Text: r.hidden.String(q.Text),
			Attachments: q.Context.Files},
		Wants: orchestrator.Wants{Effort: r.Model.Effort}, Agent: r.Model.Agent, Model: r.Model.Model,
		Sandbox: at.Sandbox, Queued: began, Started: began, Delivered: true,
	}
	ctx, leave, err := e.enter(ctx, r)
	if err != nil {
		return a, err
	}
	defer leave()
	result, err := e.askAgent(ctx, r)
	r.entry.Prompt.Conversation = e.currentID(ctx, q.Conversation)
	r.entry.Ended = e.opts.Now()
	r.entry.Outcome = outcomeOf(r.Model.Agent, result, err)
	r.entry.State, r.entry.Outcome.Duration = r.entry.Outcome.State, r.entry.Ended.Sub(began)
	a = orchestrator.ConsultAnswer{Session: r.session.ID, Entry: r.entry.ID, Model: r.Model, LeftOut: r.leftOut,
		Usage: result.Consumed.Usage, CostUSD: result.Consumed.CostUSD, Duration: r.entry.Outcome.Duration}
	a.Model.Model = cmp.Or(result.Model, a.Model.Model)
	if err == nil {
		shortened := false
		if a.Text, shortened = e.opts.Shorten.Shorten(ctx, at, result.Text, side.MostResult); shortened {
			a.Whole, r.entry.Outcome.Short = result.Text, a.Text
		}
	}
	if err == nil || by.kind == orchestrator.WorkEntry {
		all := r.steps.Steps()
		r.entry.Outcome.Steps = len(all)
		stored := e.opts.Store.AddEntry(context.WithoutCancel(ctx), r.entry, all)
		if errors.Is(stored, orchestrator.ErrNoSession) { // return the answer even if the session was deleted
			e.opts.Logger.Warn("an entry is not stored, because its session is deleted", "session", r.session.ID)
			stored = nil
		}
		if stored != nil {
			err = errors.Join(err, fmt.Errorf("store an entry of a session: %w", stored))
		}
	}
	if err != nil {
		return a, fmt.Errorf("ask %s: %w", r.Model.Agent, err)
	}
	return a, nil
}

func (e *Engine) modelOf(ctx context.Context, q orchestrator.ConsultQuestion,
	id orchestrator.SessionID, kind orchestrator.EntryKind) (orchestrator.ModelChoice, error) {
	if q.Model.Agent != "" {
		return q.Model, nil
	}
	return e.last(ctx, q.Conversation, id, kind)
}

func (e *Engine) last(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.SessionID, kind orchestrator.EntryKind) (orchestrator.ModelChoice, error) {
	t, err := e.opts.Store.LastAside(ctx, in, id, kind)
	return orchestrator.ModelChoice{Agent: t.Agent, Model: t.Model, Effort: t.Wants.Effort}, err
}

// outcomeOf returns the outcome to store for an agent's answer. The error is nil if the agent answered.
func outcomeOf(agent cli.Agent, r cli.Result, err error) orchestrator.Outcome {
	o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: r.Text, Agent: agent, Model: r.Model,
		Usage: r.Consumed.Usage, CostUSD: r.Consumed.CostUSD}
	o.Fill.SpentUSD = r.Fill.SpentUSD
	switch {
	case err == nil:
		return o
	case errors.Is(err, orchestrator.ErrShutdown):
		o.State = orchestrator.TurnInterrupted
	case errors.Is(err, cli.ErrAborted), errors.Is(err, context.Canceled):
		o.State = orchestrator.TurnAborted
	default:
		o.State = orchestrator.TurnFailed
	}
	o.Failure = err.Error()
	return o
}

// System prompts for an agent that is asked a question, with and without access to files. The agent runs in plan mode,
// because that is read-only. These prompts replace the instructions of the plan mode.
const (
	instructions = consulted + "With the tools that you have you may read the files of the project, and you change " +
		"nothing. " + answering
	withoutFiles = consulted + "You cannot read the files of the project either: if the answer depends on one, " +
		"say so and name it. You change nothing. " + answering

	consulted = "You are consulted: another conversation asks you one question and gets your answer. Answer it " +
		"directly. You have no shell. "
	answering = "Write no plan, and ask nothing back. If your answer has more than a few pages, end it with a " +
		"summary in <SUMMARY></SUMMARY>."
)

// askAgent sends the question to the agent, together with the entries of the session that the agent has not seen. If
// the agent cannot continue its last agent session, askAgent starts a new one.
func (e *Engine) askAgent(ctx context.Context, r *asking) (cli.Result, error) {
	var store handoff.AgentSessions
	var own orchestrator.AgentSession
	if !r.by.fresh {
		store, own = e.opts.Store, r.session.AgentSessions[r.entry.AgentEnv()]
	}
	record := context.WithoutCancel(ctx)
	known := handoff.NewKnowledge(store, r.entry, own)
	for {
		resumed := known.Own().ID
		result, err := e.askOnce(ctx, r, known)
		var failure *cli.Failure
		if resumed == "" || !errors.As(err, &failure) || failure.Kind != cli.ResumeFailed {
			if err := known.Wait(); err != nil {
				e.opts.Logger.Error("store an agent's knowledge of a session", "session", r.session.ID, "err", err)
			}
			return result, err
		}
		e.opts.Logger.Warn("an agent cannot resume its own session, and is asked in a new one",
			"session", r.session.ID, "agent", r.Model.Agent, "err", err)
		known.Forget()
		if err := e.opts.Store.SetAgentSession(record, r.session.ID, r.entry.AgentEnv(), known.Own()); err != nil {
			return result, err
		}
	}
}

func (e *Engine) askOnce(ctx context.Context, r *asking, known *handoff.Knowledge) (cli.Result, error) {
	record := context.WithoutCancel(ctx)
	entries, err := e.opts.Store.EntriesAfter(ctx, r.session.ID, known.Own().UpTo, handoff.MostMissed)
	if err != nil {
		return cli.Result{}, fmt.Errorf("load history: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(t orchestrator.Turn) bool { return t.Entry.Number > r.by.upTo })
	missed := slices.DeleteFunc(known.Missed(entries), func(t orchestrator.Turn) bool {
		return slices.Contains(r.by.quoted, t.ID)
	})
	told := handoff.Write(missed, "", e.opts.Budget())
	r.leftOut = told.LeftOut
	if err := known.Sending(ctx); err != nil {
		return cli.Result{}, err
	}
	result, err := r.by.ask(ctx, r.at, side.Question{
		Model: r.Model, Prompt: told.Text + r.Context.Contents + r.Text + r.by.otherAnswers,
		Instructions: r.by.instructions,
		Resume:       known.Own().ID, Wait: cmp.Or(r.Wait, DefaultWait), Person: r.Person,
		Watch: func(ev cli.Event) {
			known.Learn(record, ev)
			r.record(ev)
		},
	})
	if err == nil { // some agents report the ID of their session only at the end
		known.Learn(record, cli.SessionStarted{AgentSessionID: result.AgentSessionID})
		known.Learn(record, result)
	}
	return result, err
}

// Last implements orchestrator.Consults.
func (e *Engine) Last(ctx context.Context, in orchestrator.ConversationID,
	idOrName string) (orchestrator.ModelChoice, error) {
	return e.lastIn(ctx, in, idOrName, orchestrator.ConsultationEntry)
}

// LastWorker is like Last, but returns the model of the newest delegated task (see orchestrator.Work) in a session.
func (e *Engine) LastWorker(ctx context.Context, in orchestrator.ConversationID,
	idOrName string) (orchestrator.ModelChoice, error) {
	return e.lastIn(ctx, in, idOrName, orchestrator.WorkEntry)
}

func (e *Engine) lastIn(ctx context.Context, in orchestrator.ConversationID, idOrName string,
	kind orchestrator.EntryKind) (orchestrator.ModelChoice, error) {
	if idOrName == "" {
		return e.last(ctx, in, "", kind)
	}
	s, err := orchestrator.FindSession(ctx, e.opts.Names, in, idOrName)
	if errors.Is(err, orchestrator.ErrNoSession) {
		err = orchestrator.ErrNoConsult
	}
	if err != nil {
		return orchestrator.ModelChoice{}, err
	}
	return e.last(ctx, in, s.ID, kind)
}

// Asking implements orchestrator.Consults.
func (e *Engine) Asking(in orchestrator.ConversationID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.shownIn(in))
}

// Abort implements orchestrator.Consults. An aborted call of Ask returns once all processes of its agent are dead.
func (e *Engine) Abort(in orchestrator.ConversationID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.shownIn(in)
	for _, one := range all {
		one.cancel(cli.ErrAborted)
	}
	return len(all)
}

// MoveChat implements orchestrator.Consults.
func (e *Engine) MoveChat(from, to int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for one := range e.asking {
		if one.conversation.Chat == from {
			one.conversation.Chat = to
		}
	}
}

// currentID returns the current ID of the conversation to which the question in ctx belongs. The ID changes if a group
// becomes a supergroup. If ctx contains no question, currentID returns the given ID.
func (e *Engine) currentID(ctx context.Context, given orchestrator.ConversationID) orchestrator.ConversationID {
	one, begun := ctx.Value(questionKey{}).(*question)
	if !begun {
		return given
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return one.conversation
}

// shownIn returns the unanswered questions of all conversations whose activity ductor shows in the given conversation.
// The caller holds mu.
func (e *Engine) shownIn(in orchestrator.ConversationID) (all []*question) {
	for one := range e.asking {
		if one.conversation.Shown() == in {
			all = append(all, one)
		}
	}
	return all
}

// Close cancels all questions and accepts no new ones. It waits until all questions have ended or ctx is done.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	for one := range e.asking {
		one.cancel(orchestrator.ErrShutdown)
	}
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the questions to models: %w", ctx.Err())
	}
}
