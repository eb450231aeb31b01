package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrAborted is the cause (context.Cause) of the end of a turn that a user aborted.
var ErrAborted = errors.New("aborted")

// ErrReplaced is the cause of the end of a turn that the user's next message replaces. It is an ErrAborted whose
// session continues: ductor asks the agent to end the turn. The process survives if the agent does that and nothing of
// the turn continues to run.
var ErrReplaced = fmt.Errorf("replaced by the next message: %w", ErrAborted)

// Replaced reports whether ctx ended with ErrReplaced.
func Replaced(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrReplaced) }

// ErrStale is the cause of the end of a turn that the sweep ended because it ran far too long.
var ErrStale = errors.New("stale")

// ErrClosing is the cause of the end of a turn that ended because ductor stops.
var ErrClosing = errors.New("ductor is stopping")

// ErrDetached is the cause of the end of a turn that ductor detached from, in order to resume it after its next start.
// A Process also returns it after Detach.
var ErrDetached = errors.New("detached")

// ErrFromOutside is wrapped in the failure of a turn whose program was killed by an unknown process.
var ErrFromOutside = errors.New("it was ended from outside")

// ErrNotAsked means that no request with this ID waits for a decision: it was answered, withdrawn or never made.
var ErrNotAsked = errors.New("the agent does not wait for this answer")

// ErrNoTurn means that no running turn could accept a message.
var ErrNoTurn = errors.New("no turn runs that takes a message")

// Cut returns the Result of a turn that ended because its context did: Aborted if a user aborted it, Detached if ductor
// detached from it, and otherwise a TimedOut with the reason. The Emitter adds the text so far.
func Cut(ctx context.Context, agent Agent) Result {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrAborted) {
		return Result{Aborted: true}
	}
	if errors.Is(cause, ErrDetached) {
		return Result{Detached: true}
	}
	f := &Failure{Kind: TimedOut, Agent: agent, Cause: cause}
	switch {
	case errors.Is(cause, ErrStale):
		f.Reason = "it had been running for far too long"
	case cause != nil && !errors.Is(cause, context.DeadlineExceeded):
		f.Reason = cause.Error()
	}
	return Result{Err: f}
}

// Stalled returns the Result of a turn whose agent was silent for too long.
func Stalled(agent Agent, silence time.Duration) Result {
	return Result{Err: Failf(TimedOut, agent, "it said nothing for %s", silence.Round(time.Second))}
}
