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

// Gateway contains the methods of orchestrator.Gateway that run turns.
type Gateway interface {
	Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result
	Settled(turn cli.TurnID)
	Release(conversation cli.Conversation)
}

// Client asks agents questions. All fields except Tracer, Budgets and Secrets are required.
type Client struct {
	Gateway Gateway
	Tracer  orchestrator.Tracer // nil means that questions are not traced
	NewID   func() string
	// Budgets limits the cost of questions. If a budget is used up, Client asks nothing. nil means no limit.
	Budgets *spending.Budgets
	Secrets func(dir string) *secrets.Set // secrets that must not be shown or stored; may be nil
}

// Question is a question to an agent.
type Question struct {
	Model        orchestrator.ModelChoice
	Prompt       string
	Instructions string                // text for the system prompt
	Resume       cli.AgentSessionID    // the agent session to continue; empty to start a new one
	Wait         time.Duration         // time limit
	Person       orchestrator.PersonID // the user whose budget applies; 0 means the user of the private chat
	Asks         cli.TurnID            // the turn whose agent asks; empty if a user or ductor asks
	TextOnly     bool                  // the answer needs no files and no tools, so any agent can give it
	Watch        func(cli.Event)       // gets the events of the agent; may be nil
}

// mostAnswer limits the length of an answer in bytes, because an agent might never stop writing.
const mostAnswer = 1 << 20

// Reasons why an answer is missing or incomplete.
var (
	ErrTooLate = errors.New("it took too long")
	ErrNoText  = errors.New("the model said nothing")
	ErrNotHeld = errors.New("this agent cannot be kept from a shell of its own, " +
		"so only a user can ask it, with /consult")
	errTooLong = errors.New("its answer is too long")
)

// ReadsFiles reports whether an agent can read the project's files when it answers a question. Codex cannot: it reads
// files with a shell, and its sandbox would let the shell read the whole disk. Therefore agents that answer questions
// get no shell.
func ReadsFiles(agent cli.Agent) bool {
	list, held := tools.ReadOnly(agent)
	return !held || len(list.Only) > 0
}

// Ask asks an agent a question and returns its answer. The agent runs in the environment of the given request, but
// without the permissions of the request: the agent can only read, has no shell and sees only the project. Ask denies
// all permission requests. The settings of the project do not apply.
//
// ductor cannot enforce these limits for every agent. For a question of another agent (see Question.Asks), Ask returns
// ErrNotHeld if ductor cannot enforce the limits. The Gateway also rejects an agent for which ductor cannot enforce
// plan mode, unless q.TextOnly is set.
//
// If ctx is done, the error is the cause of ctx. The Result contains the cost of the question even after an error. An
// answer longer than one megabyte is cut.
func (a Client) Ask(ctx context.Context, at cli.Request, q Question) (cli.Result, error) {
	list, held := tools.ReadOnly(q.Model.Agent)
	if !held && q.Asks != "" {
		return cli.Result{}, ErrNotHeld
	}
	at.Turn = cli.TurnID(a.NewID())
	at.Permission, at.Attended, at.AllowedTools, at.AddDirs = cli.Plan, false, nil, nil
	at.TextOnly = q.TextOnly
	at.ToolLists = append(slices.Clip(at.ToolLists), list)
	return a.Work(ctx, at, q)
}

// Work gives an agent a task. The agent has the permissions of the given request, but gets neither the settings of the
// project nor MCP servers. In everything else, Work is like Ask.
func (a Client) Work(ctx context.Context, at cli.Request, q Question) (cli.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limited, stop := context.WithTimeoutCause(ctx, q.Wait, ErrTooLate)
	defer stop()
	who := spending.Spender{Person: q.Person}
	if who.Person == 0 && at.ChatID > 0 { // the ID of a private chat is the ID of its user
		who.Person = orchestrator.PersonID(at.ChatID)
	}
	left, err := a.Budgets.Left(ctx, at.Lang.Printer(), who)
	if err != nil {
		return cli.Result{}, err
	}
	at.Budget = left
	size := 0
	at.Conversation = cli.Conversation("side/" + a.NewID())
	defer a.Gateway.Release(at.Conversation)
	result := a.run(limited, q.Model.Agent, withQuestion(at, q), func(ev cli.Event) {
		if q.Watch != nil {
			q.Watch(ev)
		}
		if text, ok := ev.(cli.TextDelta); ok {
			if size += len(text.Text); size > mostAnswer {
				cancel(errTooLong)
			}
		}
	})
	a.Gateway.Settled(at.Turn) // the next process must not continue this turn after a restart
	a.Budgets.Count(ctx, orchestrator.Spent{ID: string(at.Turn),
		Conversation: orchestrator.ConversationID{Chat: at.ChatID}, Person: who.Person,
		Agent: q.Model.Agent, Model: cmp.Or(result.Model, q.Model.Model), Usage: result.Consumed.Usage,
		CostUSD: result.Consumed.CostUSD, Took: result.Duration})
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

func (a Client) run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if a.Tracer == nil {
		return a.Gateway.Run(ctx, agent, req, emit)
	}
	trace := a.Tracer.Begin(agent, req)
	result := a.Gateway.Run(ctx, agent, req, func(ev cli.Event) {
		trace.Observe(ev)
		emit(ev)
	})
	trace.End(result)
	return result
}

func withQuestion(at cli.Request, q Question) cli.Request {
	at.Model, at.Effort, at.Resume, at.Prompt = q.Model.Model, q.Model.Effort, q.Resume, q.Prompt
	at.Project, at.Task = cli.WithoutProject, cli.TaskPrompt
	at.SystemPrompt, at.AppendPrompt, at.Images, at.Files, at.ExtraArgs, at.Servers = "", q.Instructions, nil, nil,
		nil, nil
	at.Timeout, at.Started = q.Wait, func(context.Context, cli.Start) error { return nil }
	return at
}

// prefix returns the first n bytes of s, or fewer if it would split a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
