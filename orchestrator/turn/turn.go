// Package turn runs the agent of one turn and passes its events to the observers: secrets, files, steps, traces and the
// card.
//
// Package conversation prepares a turn and records its outcome.
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

// ErrBypassOver is the cause of the context if a turn ends because its bypass is over and its agent cannot switch to
// ask mode.
var ErrBypassOver = errors.New("bypass is over")

// Settings are options of turns. They may change between two turns.
type Settings struct {
	Agents        map[cli.Agent]orchestrator.AgentDefaults
	HandoffTokens int // maximum tokens of history for an agent that joins a session
	Recovery
}

// Recovery configures how ductor reacts to a turn that failed before the agent ran anything.
type Recovery struct {
	Limits     orchestrator.LimitPolicy `toml:"rate_limited" default:"ask" check:"ask|wait|handoff"`
	Retries    int                      `toml:"retries" default:"3" check:"0..10"`         // with an overloaded model
	RetryAfter time.Duration            `toml:"retry_after" default:"15s" check:"1s..10m"` // first pause; it doubles
	// Failures is the number of failed turns in a row after which an agent gets no turns for a while. 0 means never.
	Failures int `toml:"failures" default:"3" check:"0..100" applies:"after a restart"`
}

// Options configures a Runner.
type Options struct {
	Store      orchestrator.Store
	Gateway    orchestrator.Gateway
	Tracer     orchestrator.Tracer    // nil: nothing traces turns
	Snapshots  orchestrator.Snapshots // nil: nothing watches files
	Approvals  *approval.Service
	Breakers   *circuit.Breakers
	Summarizer *handoff.Summarizer   // summarizes history that does not fit; nil: ductor shortens it
	Owner      orchestrator.PersonID // gets the codes of log-ins; 0 disables log-ins
	Later      bool                  // a job can run a turn when the limit of its agent ends

	Settings func() Settings // returns the settings for turns that start now
	Secrets  func(cli.Request) *secrets.Set
	Project  func(dir string) orchestrator.ProjectPolicy

	Life  context.Context // parent of the contexts of turns
	Spawn func(func())    // starts a goroutine; closing the conversations waits for it
	Lang  *lang.Choices
	Now   func() time.Time
	Log   *slog.Logger
}

// Runner runs turns. Safe for concurrent use.
type Runner struct{ opts Options }

// NewRunner creates a Runner.
func NewRunner(o Options) *Runner { return &Runner{o} }

// Conversation is the interface of a Turn to its conversation. Package conversation implements it.
type Conversation interface {
	// PrepareAgain builds the request of another attempt, by the agent in who. It sets agent and model of the turn, and
	// returns the current session.
	PrepareAgain(ctx context.Context, t *orchestrator.Turn, who Choice) (cli.Request, orchestrator.Session, error)
	// RequestReady records the request of an attempt. The Turn sets promptSent when the agent gets the prompt.
	RequestReady(t orchestrator.Turn, req cli.Request, promptSent *atomic.Bool)
	// PromptSent is called when the agent gets the prompt.
	PromptSent(ctx context.Context, t orchestrator.Turn)
	// CaughtUp is called when the Turn has read all output from before a restart.
	CaughtUp(ctx context.Context, t orchestrator.Turn)
	// Titled is called when the agent reports its own title of the session.
	Titled(ctx context.Context, t orchestrator.Turn, title string)
	// RunLater creates a job that runs the turn's prompt at this time.
	RunLater(ctx context.Context, t orchestrator.Turn, at time.Time) error
	// AwaitDisk waits while the disk is full. It returns false if ctx ends first, or if the state of the disk is
	// unknown.
	AwaitDisk(ctx context.Context) bool
}

// Choice is the agent, model and effort for a turn.
type Choice struct {
	Agent   cli.Agent
	Account cli.Account // empty if another agent runs the turn than the chosen one: the conversation then sets it
	Model   cli.ModelID
	Effort  cli.Effort
	// Instead is the failure of the configured agent if this agent runs the turn in its place. Otherwise it is nil.
	Instead *cli.Failure
}

// Last identifies the last ended turn of a session. Messages was the session's number of turns at that time. If the
// session has another number now, other processes ran turns in it.
type Last struct {
	Session  orchestrator.SessionID
	Messages int
	Turn     cli.TurnID
}

// Start describes a turn that is about to run.
type Start struct {
	Conversation Conversation
	Turn         orchestrator.Turn
	Session      orchestrator.Session
	Resumes      bool            // the previous process started the turn
	Began        time.Time       // when this process started or resumed the turn
	Retries      context.Context // ends when the turn ends or when a user wants no retries
	Last         Last
}

// Turn is a running turn. One goroutine must call its methods.
type Turn struct {
	Events *Fanout

	runner *Runner
	// ctx ends with the turn. Its cause is cli.ErrAborted after an abort, ErrShutdown when ductor ends, and
	// cli.ErrDetached when the turn continues without ductor.
	ctx    context.Context
	record context.Context // never ends, so that the end of a turn is recorded even after an abort

	start  Start
	turn   orchestrator.Turn
	handed cli.HandedOver // history in the prompt that the card does not show yet
}

// New creates a Turn.
func (r *Runner) New(ctx context.Context, s Start) *Turn {
	return &Turn{
		Events: NewFanout(r.opts.Now), runner: r, ctx: ctx, record: context.WithoutCancel(ctx),
		start: s, turn: s.Turn,
	}
}

// Turn returns the turn with the agent and model of its last attempt.
func (t *Turn) Turn() orchestrator.Turn { return t.turn }

func (t *Turn) printer() lang.Printer { return t.runner.opts.Lang.Of(t.turn.Prompt.Conversation.Chat) }

func (t *Turn) log() *slog.Logger {
	in := t.turn.Prompt.Conversation
	return t.runner.opts.Log.With("turn", t.turn.ID, "chat", in.Chat, "topic", in.Topic)
}

// Finish stores the steps of the turn and returns its outcome. result is the result of the last attempt.
func (t *Turn) Finish(result cli.Result) orchestrator.Outcome {
	steps := t.Events.Steps()
	if len(steps) > 0 {
		if err := t.runner.opts.Store.SaveSteps(t.record, t.turn.ID, t.runner.opts.Now(), steps); err != nil {
			t.log().Warn("store the steps of a turn", "err", err)
		}
	}
	out := t.outcome(result)
	out.Steps = len(steps)
	return out
}

func (t *Turn) outcome(result cli.Result) orchestrator.Outcome {
	p, now, cause := t.printer(), t.runner.opts.Now(), context.Cause(t.ctx)
	out := orchestrator.Outcome{
		State: orchestrator.TurnDone, Text: result.Text, Agent: t.turn.Agent, Model: result.Model, Usage: result.Usage,
		CostUSD: result.CostUSD, Denials: result.Denials, Fallback: result.Fallback,
		Ending: orchestrator.Ending{Standing: cli.Standing{Fill: result.Fill, Limits: t.Events.Limits().Near(now)}},
		// The second difference uses the monotonic clock, which stays correct if the wall clock is set back.
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
		t.runner.opts.Log.Warn("turn failed", "turn", t.turn.ID, "kind", result.Err.Kind, "reason", result.Err.Reason,
			"code", result.Err.Code, "detail", result.Err.Detail)
	}
	return out
}
