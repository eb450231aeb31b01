package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrAborted is the cause (context.Cause) of a turn that a person ended.
var ErrAborted = errors.New("aborted")

// ErrReplaced is the cause of a turn whose place the user's next message takes. It is an ErrAborted whose session goes
// on: the agent is asked to end the turn, and keeps its process if it does that and nothing of the turn runs on.
var ErrReplaced = fmt.Errorf("replaced by the next message: %w", ErrAborted)

// Replaced says whether ctx ended with ErrReplaced.
func Replaced(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrReplaced) }

// ErrStale is the cause of a turn that the sweep ended because it ran for far too long.
var ErrStale = errors.New("stale")

// ErrClosing is the cause of a turn that ended because ductor stops.
var ErrClosing = errors.New("ductor is stopping")

// ErrDetached is the cause of a turn that ductor detached from, to resume it after its next start. It is also
// what a Process gives after Detach.
var ErrDetached = errors.New("detached")

// ErrFromOutside is beneath the failure of a turn whose program was ended by an unknown process.
var ErrFromOutside = errors.New("it was ended from outside")

// ErrNotAsked says that nothing of this id waits for a decision: it was answered, withdrawn or never asked.
var ErrNotAsked = errors.New("the agent does not wait for this answer")

// ErrNoTurn says that no turn runs that could take a message.
var ErrNoTurn = errors.New("no turn runs that takes a message")

// Cut is the Result of a turn that ended because its context did: Aborted if a person did it, Detached if
// ductor detached from it, else a TimedOut that says why. The Emitter adds the text that came so far.
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

// Stalled is the Result of a turn whose agent said nothing for so long.
func Stalled(agent Agent, silence time.Duration) Result {
	return Result{Err: Failf(TimedOut, agent, "it said nothing for %s", silence.Round(time.Second))}
}
