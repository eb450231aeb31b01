package turn

import "ductor/cli"

// Accepted records that the agent has accepted the turn, so that the loop can interrupt it. Handle calls Accepted if
// Limits.Start is set.
func (t *Turn[T]) Accepted() {
	switch {
	case t.phase == Starting:
		t.phase = Running
	case t.phase == Interrupting && t.cancellation.deferred:
		t.ask()
	}
}

// Changed handles a change of the output, and emits what users should know about it. Handle calls it.
func (t *Turn[T]) Changed(c Change) {
	t.replay.active = t.replay.active && !c.CaughtUp
	switch out := t.loop.Out; {
	case out == nil:
	case c.CaughtUp:
		out.Pass(cli.CaughtUp{})
	case c.Lost != nil:
		out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: c.Lost.Error()})
	}
}

// Past reports whether the agent printed the current item before ductor attached.
func (t *Turn[T]) Past() bool { return t.replay.active }

// Cut reports whether the loop has cut the turn short.
func (t *Turn[T]) Cut() bool { return t.cancellation.why != "" }

// Killed reports whether the loop stopped the process. Call it only after Run.
func (t *Turn[T]) Killed() bool {
	select {
	case <-t.stopped:
		return true
	default:
		return false
	}
}

// Rest returns the items that came after the end of the turn.
func (t *Turn[T]) Rest() []T { return t.rest }

// StopErr returns the error of stopping the process. Call it only after Run.
func (t *Turn[T]) StopErr() error { return t.stopErr }

// Outcome returns the Result of a turn for which the agent sent no result. end is the value that Run returned. If end
// does not determine the failure, for example because the process ended, exited returns the failure.
func (t *Turn[T]) Outcome(end End, agent cli.Agent, exited func() *cli.Failure) cli.Result {
	switch end {
	case EndCancelled:
		return cli.Cut(t.ctx, agent)
	case EndDetached:
		return cli.Result{Detached: true}
	case EndStalled:
		return cli.Stalled(agent, t.cancellation.silence)
	case EndFlooded:
		return cli.Result{Err: cli.Failf(cli.BadOutput, agent, "it says more than can be kept up with")}
	default:
		return cli.Result{Err: exited()}
	}
}
