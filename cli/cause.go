package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/lang"
)

// ErrAborted is the cause of a cancelled turn context (see context.Cause) if a user aborted the turn.
var ErrAborted = errors.New("aborted")

// ErrReplaced is the cause of a cancelled turn context if the user's next message replaces the turn. It wraps
// ErrAborted. ductor then asks the agent to end the turn. If the turn leaves no process running, the agent's process
// survives and runs the next turn.
var ErrReplaced = fmt.Errorf("replaced by the next message: %w", ErrAborted)

// Replaced reports whether ctx ended with ErrReplaced.
func Replaced(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrReplaced) }

// ErrStale is the cause of a cancelled turn context if the turn ran far too long.
var ErrStale = errors.New("stale")

// ErrClosing is the cause of a cancelled turn context if ductor stops.
var ErrClosing = errors.New("ductor is stopping")

// ErrDetached is the cause of a cancelled turn context if ductor detaches from the turn. After its next start, ductor
// will resume the turn. Reads from a Process also return ErrDetached after Process.Detach.
var ErrDetached = errors.New("detached")

// Interrupted reports whether err only shows that ctx has ended, or that ductor detached from the program.
func Interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, ErrDetached)
}

// ErrFromOutside is the Cause of a turn's Failure if an unknown process killed the agent's program.
var ErrFromOutside = errors.New("it was ended from outside")

// ErrNotAsked means that no request with the given ID waits for a decision. The request was answered or withdrawn, or
// never existed.
var ErrNotAsked = errors.New("the agent does not wait for this answer")

// ErrNoTurn means that there is no running turn to which ductor could add a message.
var ErrNoTurn = errors.New("no turn runs that takes a message")

// Cut returns the Result of a turn whose context ended. Aborted is set if a user aborted the turn, and Detached is set
// if ductor detached from it. Otherwise Err has the kind TimedOut. The caller adds the text that the agent had written;
// see turn.Emitter.
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
		f.Own = lang.NewMessage("failure.ran-too-long")
	case errors.Is(cause, ErrClosing):
		f.Own = lang.NewMessage("failure.closing")
	case cause != nil && !errors.Is(cause, context.DeadlineExceeded):
		f.Reason = cause.Error()
	}
	return Result{Err: f}
}

// Stalled returns the Result of a turn whose agent was silent for too long.
func Stalled(agent Agent, silence time.Duration) Result {
	return Result{Err: Failf(TimedOut, agent, "failure.silent", silence.Round(time.Second))}
}
