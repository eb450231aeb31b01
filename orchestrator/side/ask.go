package side

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/internal/secrets"
	"ductor/orchestrator"
	"ductor/orchestrator/spending"
)

// Gateway runs turns of agents. orchestrator.Gateway has more of it.
type Gateway interface {
	Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	Settled(turn cli.TurnID)
	Release(conversation cli.Conversation)
}

// Client asks agents. All fields but Tracer and Secrets are required.
type Client struct {
	Gateway Gateway
	Tracer  orchestrator.Tracer // nil: nothing traces the questions
	NewID   func() string
	// Budgets are those that the questions count in, which are not put once one is spent; nil for none.
	Budgets *spending.Budgets
	Secrets func(dir string) *secrets.Set // what agents that work in a directory must not have shown or stored; nil for nothing
}

// Question is what an agent is asked.
type Question struct {
	Model        orchestrator.ModelChoice
	Prompt       string
	Instructions string                // for the system prompt
	Resume       cli.AgentSessionID    // the session to continue; empty begins one
	Wait         time.Duration         // after which it is given up
	Person       orchestrator.PersonID // whose budget it counts in; 0: that of the user of a private chat
	Asks         cli.TurnID            // the turn whose agent asks; empty: a user asks, or ductor itself
	Watch        func(cli.Event)       // gets what happens, as Gateway.Run says it; nil for no one
}

// mostAnswer ends an agent that does not come to an end, in bytes of its answer.
const mostAnswer = 1 << 20

// Why a question has no answer, or no whole one.
var (
	ErrTooLate = errors.New("it took too long")
	ErrNoText  = errors.New("the model said nothing")
	ErrNotHeld = errors.New("this agent cannot be kept from a shell of its own, so only a user can ask it, with /consult")
	errTooLong = errors.New("its answer is too long")
)

// ReadsFiles reports whether a consulted agent can read the files of its project. Codex cannot: it reads with its shell, and gets none.
// Its own sandbox would let commands read the whole disk.
func ReadsFiles(agent cli.Agent) bool {
	list, held := tools.ReadOnly(agent)
	return !held || len(list.Only) > 0
}

// Ask asks an agent where at says and returns its answer. at gives no rights: the agent gets the mode for reading, no user answers
// what it asks for, and the settings of the project do not count. It has no shell and sees the project alone; an agent that cannot be
// held to that is not asked for another agent. The error says why there is no answer; it is the cause of ctx where that ended. The
// Result has what the question cost in either case. An answer beyond a megabyte is cut there.
func (a Client) Ask(ctx context.Context, at cli.Request, q Question) (cli.Result, error) {
	list, held := tools.ReadOnly(q.Model.Agent)
	if !held && q.Asks != "" {
		return cli.Result{}, ErrNotHeld
	}
	at.Turn = cli.TurnID(a.NewID())
	at.Permission, at.Attended, at.AllowedTools, at.AddDirs = cli.Plan, false, nil, nil
	at.ToolLists = append(slices.Clip(at.ToolLists), list)
	return a.Work(ctx, at, q)
}

// Work has an agent do something, as the turn that at names and with the rights that it gives. The settings of the project do not
// count, and the agent has no tool servers. All else is as with Ask.
func (a Client) Work(ctx context.Context, at cli.Request, q Question) (cli.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limited, stop := context.WithTimeoutCause(ctx, q.Wait, ErrTooLate)
	defer stop()
	who := spending.Spender{Person: q.Person}
	if who.Person == 0 && at.ChatID > 0 { // a private chat has the number of its user
		who.Person = orchestrator.PersonID(at.ChatID)
	}
	if a.Budgets != nil {
		left, err := a.Budgets.Left(ctx, at.Lang.Printer(), who)
		if err != nil {
			return cli.Result{}, err
		}
		at.Budget = left
	}
	size := 0
	at.Conversation = cli.Conversation("side/" + a.NewID())
	defer a.Gateway.Release(at.Conversation)
	result := a.run(limited, q.Model.Agent, asked(at, q), func(ev cli.Event) {
		if q.Watch != nil {
			q.Watch(ev)
		}
		if text, ok := ev.(cli.TextDelta); ok {
			if size += len(text.Text); size > mostAnswer {
				cancel(errTooLong)
			}
		}
	})
	a.Gateway.Settled(at.Turn) // no start of ductor resumes it
	if a.Budgets != nil {
		a.Budgets.Count(ctx, orchestrator.Spent{ID: string(at.Turn), Conversation: orchestrator.ConversationID{Chat: at.ChatID}, Person: who.Person,
			Agent: q.Model.Agent, Model: cmp.Or(result.Model, q.Model.Model), Usage: result.Usage, CostUSD: result.CostUSD, Took: result.Duration})
	}
	if a.Secrets != nil {
		result, _ = secrets.Clean(a.Secrets(at.Dir), result)
	}
	cause := context.Cause(limited)
	result.Text = strings.TrimSpace(prefix(result.Text, mostAnswer))
	switch {
	case errors.Is(cause, errTooLong):
		result.Err = nil
	case cause != nil:
		return result, cause
	case result.Err != nil:
		return result, result.Err
	}
	if result.Text == "" {
		return result, ErrNoText
	}
	return result, nil
}

// run runs an agent and traces that.
func (a Client) run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if a.Tracer == nil {
		return a.Gateway.Run(ctx, agent, req, emit)
	}
	trace := a.Tracer.Begin(agent, req)
	result := a.Gateway.Run(ctx, agent, req, func(ev cli.Event) {
		trace.Take(ev)
		emit(ev)
	})
	trace.End(result)
	return result
}

// asked is a request with a question in it.
func asked(at cli.Request, q Question) cli.Request {
	at.Model, at.Effort, at.Resume, at.Prompt = q.Model.Model, q.Model.Effort, q.Resume, q.Prompt
	at.Project, at.Task = cli.WithoutProject, cli.TaskPrompt
	at.SystemPrompt, at.AppendPrompt, at.Images, at.Files, at.ExtraArgs, at.Servers = "", q.Instructions, nil, nil, nil, nil
	at.Timeout, at.Started = q.Wait, func(context.Context, cli.Start) error { return nil }
	return at
}

// prefix keeps at most n bytes of s, and no half of a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
