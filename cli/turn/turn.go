package turn

import (
	"time"

	"ductor/cli"
)

// Accepted says that the agent has accepted the turn: it can be interrupted from now on. Call it from Handle, where
// Limits.Start is set.
func (t *Turn[T]) Accepted() {
	switch {
	case t.phase == Starting:
		t.phase = Running
	case t.phase == Interrupting && t.cut.deferred:
		t.ask()
	}
}

// Changed takes note of what happened to the output. Call it from Handle.
func (t *Turn[T]) Changed(c Change) {
	t.past = t.past && !c.CaughtUp
	switch out := t.loop.Out; {
	case out == nil:
	case c.CaughtUp:
		out.Pass(cli.CaughtUp{})
	case c.Lost != nil:
		out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: c.Lost.Error()})
	}
}

// Past says whether what is handled was said before ductor listened.
func (t *Turn[T]) Past() bool { return t.past }

// said is the time at which the item that is handled was said; zero for now, and where that is not known.
func (t *Turn[T]) said() time.Time {
	switch r := t.loop.Source.Resumed; {
	case !t.past:
		return time.Time{}
	case t.at == r.From && !r.Began.IsZero():
		return r.Began
	default:
		return r.When(t.at - 1)
	}
}

// Cut says whether the turn was cut short.
func (t *Turn[T]) Cut() bool { return t.cut.why != "" }

// Killed says whether the process was to be stopped. Call it after Run.
func (t *Turn[T]) Killed() bool {
	select {
	case <-t.stopped:
		return true
	default:
		return false
	}
}

// Rest is what came after the end of the turn.
func (t *Turn[T]) Rest() []T { return t.rest }

// StopErr is why the process could not be stopped. Call it after Run.
func (t *Turn[T]) StopErr() error { return t.stopErr }

// Outcome is the Result of a turn that ended as end without a Result of the agent's own. exited says what the end of the
// process means.
func (t *Turn[T]) Outcome(end End, agent cli.Agent, exited func() *cli.Failure) cli.Result {
	switch end {
	case EndCancelled:
		return cli.Cut(t.ctx, agent)
	case EndDetached:
		return cli.Result{Detached: true}
	case EndStalled:
		return cli.Stalled(agent, t.cut.silence)
	case EndFlooded:
		return cli.Result{Err: cli.Failf(cli.BadOutput, agent, "it says more than can be kept up with")}
	default:
		return cli.Result{Err: exited()}
	}
}
