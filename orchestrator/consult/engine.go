package consult

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// Options configure an Engine. All fields are required.
type Options struct {
	Side  side.Client
	Store orchestrator.ConsultStore
	// SideRequest returns the base request for side sessions of a conversation: the environment and directory of the
	// conversation's next turn.
	SideRequest func(ctx context.Context, in orchestrator.ConversationID) (cli.Request, error)
	Shorten     side.Shortener
	Works       Works
	Now         func() time.Time
	Logger      *slog.Logger
}

// Limits of questions.
const (
	DefaultWait = 10 * time.Minute
	mostAtOnce  = 8      // simultaneous questions of one conversation
	mostSaid    = 20_000 // bytes of earlier questions and answers that are stored for an agent that cannot resume
)

// Engine asks models. Safe for concurrent use.
type Engine struct {
	opts Options

	mu     sync.Mutex
	asking map[orchestrator.ConversationID]map[*question]bool
	closed bool
	wg     sync.WaitGroup
}

// question is an unanswered question with its active side sessions: several for a group, and none before the first or
// between two of them.
type question struct {
	consults map[orchestrator.ConsultID]bool
	cancel   context.CancelCauseFunc
}

// questionKey is the context key of a *question.
type questionKey struct{}

var _ orchestrator.Consults = (*Engine)(nil)

// New creates an Engine. Close ends it.
func New(o Options) *Engine {
	return &Engine{opts: o, asking: map[orchestrator.ConversationID]map[*question]bool{}}
}

// Ask implements orchestrator.Consults.
func (e *Engine) Ask(ctx context.Context, q orchestrator.ConsultQuestion) (orchestrator.ConsultAnswer, error) {
	at, err := e.opts.SideRequest(ctx, q.Conversation)
	if err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	hide := func(text string) string { return text }
	if e.opts.Side.Secrets != nil {
		hide = e.opts.Side.Secrets(at.Dir).String
	}
	return e.askInSide(ctx, at, q, approach{instructions: instructions,
		ask: func(ctx context.Context, at cli.Request, put side.Question) (cli.Result, error) {
			if !side.ReadsFiles(put.Model.Agent) {
				put.Instructions = withoutFiles
			}
			put.Asks, put.Watch = q.Asks, e.trail(orchestrator.AuditEntry{
				Conversation: q.Conversation, Turn: q.Asks, Call: cli.ToolID(e.opts.Side.NewID()),
				Agent: put.Model.Agent,
				Rule:  string(cli.Plan),
			}, hide).observe
			return e.opts.Side.Ask(ctx, at, put)
		}})
}

// approach is a way to ask an agent, with its system prompt.
type approach struct {
	ask          func(ctx context.Context, at cli.Request, q side.Question) (cli.Result, error)
	instructions string
}

// askInSide asks an agent in the side session of a question.
func (e *Engine) askInSide(ctx context.Context, at cli.Request, q orchestrator.ConsultQuestion,
	by approach) (orchestrator.ConsultAnswer, error) {
	began := e.opts.Now()
	c, at, err := e.side(ctx, at, q)
	if err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	ctx, leave, err := e.enter(ctx, c)
	if err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	defer leave()
	r, err := e.askAgent(ctx, at, c, q, by)
	if err != nil {
		return orchestrator.ConsultAnswer{}, fmt.Errorf("ask %s: %w", c.Model.Agent, err)
	}
	a := orchestrator.ConsultAnswer{Consult: c.ID, Model: c.Model, Usage: r.Usage, CostUSD: r.CostUSD,
		Duration: e.opts.Now().Sub(began)}
	a.Model.Model = cmp.Or(r.Model, a.Model.Model)
	shortened := false
	if a.Text, shortened = e.opts.Shorten.Shorten(ctx, at, r.Text, side.MostResult); shortened {
		a.Whole = r.Text
	}
	c.Own, c.Used = r.AgentSessionID, e.opts.Now()
	c.Said = newest(c.Said+"Question: "+q.Text+"\nAnswer: "+a.Text+"\n\n", mostSaid)
	if err := e.opts.Store.SaveConsult(context.WithoutCancel(ctx), c); err != nil {
		return a, fmt.Errorf("store a side session: %w", err)
	}
	return a, nil
}

// side returns the side session of a question and the request that starts its agent.
func (e *Engine) side(ctx context.Context, at cli.Request, q orchestrator.ConsultQuestion) (orchestrator.Consult,
	cli.Request, error) {
	if q.Follows == "" {
		c := orchestrator.Consult{
			ID: orchestrator.ConsultID(e.opts.Side.NewID()), Conversation: q.Conversation, Model: q.Model,
			Sandbox: at.Sandbox, Dir: at.Dir,
		}
		c.Home = cmp.Or(at.Session, string(c.ID))
		at.Session = c.Home
		return c, at, nil
	}
	c, err := e.Find(ctx, q.Conversation, q.Follows)
	switch {
	case err != nil:
		return c, at, err
	// The agent does not know the conversation from another environment.
	case c.Sandbox != at.Sandbox || c.Dir != at.Dir:
		c.Own, c.Sandbox, c.Dir = "", at.Sandbox, at.Dir
	}
	at.Session = c.Home
	return c, at, nil
}

// Find returns a side session of a conversation, or ErrNoConsult or ErrElsewhere.
func (e *Engine) Find(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.ConsultID) (orchestrator.Consult, error) {
	c, err := e.opts.Store.Consult(ctx, id)
	if err != nil {
		return c, fmt.Errorf("load a side session: %w", err)
	}
	if c.Conversation != in {
		return orchestrator.Consult{}, orchestrator.ErrElsewhere
	}
	return c, nil
}

// The system prompts of a consulted agent, with and without access to files. They override the plan instructions of its
// read-only mode.
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

// askAgent asks the agent a question. If the agent cannot resume, put repeats the earlier conversation in the prompt.
func (e *Engine) askAgent(ctx context.Context, at cli.Request, c orchestrator.Consult, q orchestrator.ConsultQuestion,
	by approach) (cli.Result, error) {
	ask := side.Question{Model: c.Model, Prompt: q.Text, Instructions: by.instructions, Resume: c.Own,
		Wait: cmp.Or(q.Wait, DefaultWait)}
	if c.Own != "" {
		r, err := by.ask(ctx, at, ask)
		var failure *cli.Failure
		if !errors.As(err, &failure) || failure.Kind != cli.ResumeFailed {
			return r, err
		}
		e.opts.Logger.Warn("an agent cannot resume a side session; the prompt repeats the conversation",
			"consult", c.ID, "agent", c.Model.Agent, "err", err)
	}
	if ask.Resume = ""; c.Said != "" {
		ask.Prompt = "[What you were asked before, and what you answered]\n" + c.Said + "[The question now]\n" + q.Text
	}
	return by.ask(ctx, at, ask)
}

// newest returns the last bytes of a text, from the start of a line if possible.
func newest(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		return rest
	}
	return strings.ToValidUTF8(text, "")
}

// Begin implements orchestrator.Consults.
func (e *Engine) Begin(ctx context.Context, in orchestrator.ConversationID) (_ context.Context, end func()) {
	ctx, _, end = e.begin(ctx, in)
	return ctx, end
}

func (e *Engine) begin(ctx context.Context, in orchestrator.ConversationID) (_ context.Context, one *question,
	end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	one = &question{consults: map[orchestrator.ConsultID]bool{}, cancel: cancel}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asking[in] == nil {
		e.asking[in] = map[*question]bool{}
	}
	e.asking[in][one] = true
	return context.WithValue(ctx, questionKey{}, one), one, func() {
		cancel(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		if delete(e.asking[in], one); len(e.asking[in]) == 0 {
			delete(e.asking, in)
		}
	}
}

// enter marks a side session as in use until leave is called. If ctx belongs to no question, it begins one.
func (e *Engine) enter(ctx context.Context, c orchestrator.Consult) (_ context.Context, leave func(), err error) {
	end := func() {}
	one, begun := ctx.Value(questionKey{}).(*question)
	if !begun {
		ctx, one, end = e.begin(ctx, c.Conversation)
	}
	err = context.Cause(ctx)
	if err == nil {
		err = e.register(one, c)
	}
	if err != nil {
		end()
		return ctx, nil, err
	}
	return ctx, func() {
		e.mu.Lock()
		delete(one.consults, c.ID)
		e.mu.Unlock()
		end()
		e.wg.Done()
	}, nil
}

// register registers a side session as in use. It fails if the session is already in use or there are too many.
func (e *Engine) register(one *question, c orchestrator.Consult) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return orchestrator.ErrShutdown
	}
	busy := 0
	for other := range e.asking[c.Conversation] {
		if other.consults[c.ID] {
			return orchestrator.ErrConsultBusy
		}
		busy += len(other.consults)
	}
	if busy >= mostAtOnce {
		return orchestrator.ErrTooManyConsults
	}
	one.consults[c.ID] = true
	e.wg.Add(1)
	return nil
}

// Last implements orchestrator.Consults.
func (e *Engine) Last(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Consult, error) {
	return e.opts.Store.LastConsult(ctx, in)
}

// Asking implements orchestrator.Consults.
func (e *Engine) Asking(in orchestrator.ConversationID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asking[in])
}

// Abort implements orchestrator.Consults. Ask returns later, when all processes of its agent are dead.
func (e *Engine) Abort(in orchestrator.ConversationID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	for one := range e.asking[in] {
		one.cancel(cli.ErrAborted)
	}
	return len(e.asking[in])
}

// Close cancels all questions, rejects new ones, and waits for their ends until ctx is done.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	for _, here := range e.asking {
		for one := range here {
			one.cancel(orchestrator.ErrShutdown)
		}
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
