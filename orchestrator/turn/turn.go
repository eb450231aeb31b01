// Package turn runs the agent of one turn. It passes the events of the agent to observers that remove secrets, watch
// files, record steps, write traces and show the card.
//
// Package conversation prepares a turn and stores its outcome.
package turn

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/circuit"
	"ductor/orchestrator/handoff"
)

// ErrBypassOver is the cause of a turn's context if ductor ends the turn because the bypass of the turn is over and its
// agent cannot switch to the mode ask.
var ErrBypassOver = errors.New("bypass is over")

// Settings configure a turn. A change applies to turns that start after it.
type Settings struct {
	Agents        map[cli.Agent]orchestrator.AgentDefaults
	HandoffTokens int // maximum tokens of history for an agent that is new in a session
	Recovery
}

// Recovery configures the reaction to a turn that failed before its agent ran anything.
type Recovery struct {
	Limits  orchestrator.LimitPolicy `toml:"rate_limited" default:"ask" check:"ask|wait|handoff"`
	Retries int                      `toml:"retries" default:"3" check:"0..10"` // number of retries
	// RetryAfter is the pause before the first retry. It doubles with each retry.
	RetryAfter time.Duration `toml:"retry_after" default:"15s" check:"1s..10m"`
	// Failures is the number of failed turns in a row after which ductor does not use an agent for a while. 0 means
	// that ductor always uses the agent.
	Failures int `toml:"failures" default:"3" check:"0..100" applies:"after a restart"`
}

// Options configures a Runner.
type Options struct {
	Store      orchestrator.Store
	Gateway    orchestrator.Gateway
	Tracer     orchestrator.Tracer    // nil means that turns are not traced
	Snapshots  orchestrator.Snapshots // nil means that no files are watched
	Approvals  *approval.Service
	Breakers   *circuit.Breakers
	Summarizer *handoff.Summarizer   // summarizes history that is too long; if nil, ductor shortens the history instead
	Owner      orchestrator.PersonID // gets the codes of log-ins; 0 means that users cannot log in agents
	Later      bool                  // whether ductor has jobs, which can run a prompt after a usage limit

	Settings func() Settings // returns the settings for a turn that starts now
	Secrets  func(cli.Request) *secrets.Set
	Project  func(dir string) orchestrator.ProjectPolicy

	Life  context.Context // parent of the contexts of all turns
	Spawn func(func())    // starts a goroutine that must end before the conversations shut down
	Lang  *lang.Choices
	Now   func() time.Time
	Log   *slog.Logger
}

// Runner runs turns. It is safe for concurrent use.
type Runner struct{ opts Options }

// NewRunner creates a Runner.
func NewRunner(o Options) *Runner { return &Runner{o} }

// Conversation contains the functions that a Turn calls in its conversation. Package conversation implements it.
type Conversation interface {
	// PrepareAgain builds the request for another attempt, with the agent and the model in who. It sets the agent and
	// the model of t, and returns the session to use.
	PrepareAgain(ctx context.Context, t *orchestrator.Turn, who Choice) (cli.Request, orchestrator.Session, error)
	// The Turn calls RequestReady with the request of each attempt. Later it sets promptSent to true when the agent
	// gets the prompt.
	RequestReady(t orchestrator.Turn, req cli.Request, promptSent *atomic.Bool)
	// The Turn calls PromptSent when the agent gets the prompt.
	PromptSent(ctx context.Context, t orchestrator.Turn)
	// The Turn calls CaughtUp when it has read all output that the agent wrote before a restart of ductor.
	CaughtUp(ctx context.Context, t orchestrator.Turn)
	// The Turn calls Titled when the agent reports a title for the session.
	Titled(ctx context.Context, t orchestrator.Turn, title string)
	// RunLater creates a job that runs the turn's prompt at a time.
	RunLater(ctx context.Context, t orchestrator.Turn, at time.Time) error
	// AwaitDisk waits until the disk is not full. It returns false if ctx is done before that, or if the state of the
	// disk is unknown.
	AwaitDisk(ctx context.Context) bool
}

// Choice is the agent, model and effort for a turn.
type Choice struct {
	Agent cli.Agent
	// Account is empty if Agent replaces the chosen agent. The Conversation then chooses the account.
	Account cli.Account
	Model   cli.ModelID
	Effort  cli.Effort
	// Instead is the failure because of which Agent replaces the configured agent. It is nil if Agent is the configured
	// agent.
	Instead *cli.Failure
}

// Last describes the last turn of a session. Messages is the number of turns in the session at the end of that turn. If
// the number is different when the next turn starts, another process has run turns in the session.
type Last struct {
	Session  orchestrator.SessionID
	Messages int
	Turn     cli.TurnID
}

// Start describes a turn that is about to start or, after a restart, to continue.
type Start struct {
	Conversation Conversation
	Turn         orchestrator.Turn
	Session      orchestrator.Session
	Request      cli.Request     // the request of the last attempt; Turn.Run sets it
	Resumes      bool            // the turn began before a restart of ductor
	Began        time.Time       // when this process started or continued the turn
	Retries      context.Context // cancelled when the turn ends or when the user wants no more retries
	Last         Last
}

// Turn is a running turn. One goroutine must call its methods.
type Turn struct {
	Events *Fanout

	runner *Runner
	// ctx is cancelled when the turn must end. The cause is cli.ErrAborted if a user aborts it, and ErrShutdown if
	// ductor ends. It is cli.ErrDetached if the turn continues while ductor restarts.
	ctx    context.Context
	record context.Context // never cancelled, so that the end of an aborted turn is stored, too

	start  Start
	turn   orchestrator.Turn
	handed cli.HandedOver // describes history in the prompt; zero if the card already shows it
}

// New creates a Turn.
func (r *Runner) New(ctx context.Context, s Start) *Turn {
	return &Turn{
		Events: NewFanout(r.opts.Now), runner: r, ctx: ctx, record: context.WithoutCancel(ctx),
		start: s, turn: s.Turn,
	}
}

// Turn returns the stored turn, with the agent and model of the newest attempt.
func (t *Turn) Turn() orchestrator.Turn { return t.turn }

func (t *Turn) printer() lang.Printer { return t.runner.opts.Lang.Of(t.turn.Prompt.Conversation.Chat) }

func (t *Turn) log() *slog.Logger {
	in := t.turn.Prompt.Conversation
	return t.runner.opts.Log.With("turn", t.turn.ID, "chat", in.Chat, "topic", in.Topic)
}

// Finish stores the steps of the turn and returns the outcome. The caller passes the result of the last attempt.
func (t *Turn) Finish(result cli.Result) orchestrator.Outcome {
	steps := t.Events.Steps()
	if len(steps) > 0 {
		if err := t.runner.opts.Store.SaveSteps(t.record, t.turn.ID, t.runner.opts.Now(), steps); err != nil {
			t.log().Warn("store the steps of a turn", "err", err)
		}
	}
	out := t.outcome(result)
	out.Steps = len(steps)
	for _, agent := range t.Events.Replaced() {
		out.Recovery.Replaced = agent
	}
	return out
}

func (t *Turn) outcome(result cli.Result) orchestrator.Outcome {
	p, now, cause := t.printer(), t.runner.opts.Now(), context.Cause(t.ctx)
	out := orchestrator.Outcome{
		State: orchestrator.TurnDone, Text: result.Text, Agent: t.turn.Agent, Model: result.Model,
		Usage: result.Consumed.Usage, CostUSD: result.Consumed.CostUSD,
		Denials: result.Denials, Fallback: result.Fallback,
		Ending: orchestrator.Ending{Standing: cli.Standing{Fill: result.Fill, Limits: t.Events.Limits().Near(now)}},
		// now.Sub(Began) uses the monotonic clock, so it is right even if the wall clock was set back.
		Duration: max(now.Sub(t.turn.Queued), now.Sub(t.start.Began), 0),
	}
	switch {
	case errors.Is(cause, orchestrator.ErrShutdown):
		out.State, out.Failure = orchestrator.TurnInterrupted, p.Text("turn.interrupted")
		out.Recovery = orchestrator.Repeatable()
	case result.Err != nil && errors.Is(cause, ErrBypassOver):
		out.State, out.Failure = orchestrator.TurnFailed, p.Text("turn.bypass-stopped")
		out.Recovery = orchestrator.Repeatable()
	case result.Aborted:
		out.State = orchestrator.TurnAborted
	case result.Err != nil:
		failed := t.Failed(result.Err)
		out.State, out.Failure, out.Recovery = failed.State, failed.Failure, failed.Recovery
		t.runner.opts.Log.Warn("turn failed", "turn", t.turn.ID, "kind", result.Err.Kind,
			"reason", result.Err.Why().String(), "code", result.Err.Code, "detail", result.Err.Detail)
	}
	return out
}
