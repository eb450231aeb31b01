package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrAborted is the cause (context.Cause) if a turn ends because a user aborted it.
var ErrAborted = errors.New("aborted")

// ErrReplaced is the cause if a turn ends because the user's next message replaces it. It is an ErrAborted whose
// session continues: ductor asks the agent to end the turn. If the agent does, and nothing of the turn continues to
// run, the process survives.
var ErrReplaced = fmt.Errorf("replaced by the next message: %w", ErrAborted)

// Replaced reports whether ctx ended with ErrReplaced.
func Replaced(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrReplaced) }

// ErrStale is the cause if a turn ends because it ran far too long. The regular check for such turns ends it.
var ErrStale = errors.New("stale")

// ErrClosing is the cause if a turn ends because ductor stops.
var ErrClosing = errors.New("ductor is stopping")

// ErrDetached is the cause if ductor detaches from a turn, in order to resume it after the next start. A Process also
// returns it after Detach.
var ErrDetached = errors.New("detached")

// ErrFromOutside is wrapped in the failure of a turn if an unknown process killed the turn's program.
var ErrFromOutside = errors.New("it was ended from outside")

// ErrNotAsked means that no request with this ID waits for a decision: it was answered or withdrawn, or never existed.
var ErrNotAsked = errors.New("the agent does not wait for this answer")

// ErrNoTurn means that no running turn could accept a message.
var ErrNoTurn = errors.New("no turn runs that takes a message")

// Cut returns the Result of a turn that ended because its context ended. Aborted is set if a user aborted the turn,
// Detached if ductor detached from it. Otherwise Err is a TimedOut with the reason. The Emitter adds the text that
// exists until then.
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
