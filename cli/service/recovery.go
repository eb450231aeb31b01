package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"ductor/cli"
)

// turn runs req. If a live process fails before the turn had any effect, turn runs req once more in one-shot mode. turn
// emits the Result and returns it.
func (s *Service) turn(ctx context.Context, entry *agentEntry, req cli.Request, emit func(cli.Event)) cli.Result {
	agent := entry.provider.Agent()
	req, err := s.ready(ctx, entry, req, emit)
	var mode cli.Mode
	if err == nil {
		mode, err = s.mode(ctx, entry)
	}
	switch {
	case ctx.Err() != nil:
		return emitted(emit, cli.Cut(ctx, agent))
	case err != nil:
		return emitted(emit, cli.Result{Err: entry.runEnv.lost(agent, err)})
	}
	a := s.attempt(ctx, entry, mode, req, emit)
	if mode == cli.Live && s.mayRepeat(ctx, entry, req, a) {
		s.opts.Logger.Warn("a live agent broke before it showed anything; asking once more, one-shot",
			"agent", string(agent), "turn", string(req.Turn), "kind", string(a.result.Err.Kind), "code",
			a.result.Err.Code)
		if a.lent != nil {
			s.pool.discardInBackground(a.lent)
		}
		steered := a.result.Steered
		a = s.attempt(ctx, entry, cli.OneShot, req, emit)
		a.result.Fallback = true
		a.result.Steered.Add(steered)
	}
	a.result.Err = cli.Sharpened(a.result.Err)
	if f := a.result.Err; f != nil && f.Kind == cli.LimitReached && f.ResetAt.IsZero() {
		f.ResetAt = cli.ResetAt(f.Reason, s.opts.Now())
	}
	a.result.Err = entry.named(a.result.Err)
	s.settle(ctx, entry.runEnv, &a, func() { emit(a.result) })
	return a.result
}

// mayRepeat reports whether the live process failed before the turn could have an effect, and the agent supports
// one-shot mode. In accept-edits and auto it returns false: an agent in one-shot mode cannot ask ductor, so ductor
// could not decide what the agent may do.
func (s *Service) mayRepeat(ctx context.Context, entry *agentEntry, req cli.Request, a attempt) bool {
	if req.Permission == cli.AcceptEdits || req.Permission == cli.Auto {
		return false
	}
	if a.result.Err == nil || !broke(a.result.Err) || a.shown || ctx.Err() != nil {
		return false
	}
	can, err := entry.modes.get(ctx)
	return err == nil && slices.Contains(can, cli.OneShot)
}

func broke(f *cli.Failure) bool { return f.Kind == cli.Crashed || f.Kind == cli.BadOutput }

// settle emits the Result by calling emitResult, and decides whether the pool keeps the session. After a turn that was
// cut short, settle returns only when all processes of the turn have ended.
func (s *Service) settle(ctx context.Context, at *runEnv, a *attempt, emitResult func()) {
	defer s.pool.requestMeasurement()
	switch {
	case a.lent == nil:
		emitResult()
		if a.late != nil {
			_ = s.awaitLate(a.late)
		}
	case a.result.Detached:
		s.pool.detachFrom(a.lent)
		emitResult()
	case a.result.Aborted && cli.Replaced(ctx) && s.pool.giveBack(a.lent):
		emitResult()
	// A turn that ended by itself just before ductor could detach was not cut short, although ctx has ended.
	case a.result.Aborted || ctx.Err() != nil && !errors.Is(context.Cause(ctx), cli.ErrDetached):
		if at.sandbox == "" {
			emitResult()
			_ = s.pool.discard(a.lent) // if this fails, the pool closes the session later
			return
		}
		a.result = at.unended(a.lent.agent, a.result, s.pool.discard(a.lent))
		emitResult()
	case reusable(a.result) && s.pool.giveBack(a.lent):
		emitResult()
	default:
		s.pool.discardInBackground(a.lent)
		emitResult()
	}
}

// awaitLate waits until late is closed; see open. It waits at most Grace, and returns false if late is still open then.
func (s *Service) awaitLate(late chan struct{}) bool {
	wait := time.NewTimer(s.opts.Grace)
	defer wait.Stop()
	select {
	case <-late:
		return true
	case <-wait.C:
		return false
	}
}

// reusable reports whether the session can run another turn after this Result. This is the case after a success. It is
// also the case if only the model failed, and the agent still works.
func reusable(r cli.Result) bool {
	if r.Err == nil {
		return true
	}
	switch r.Err.Kind {
	case cli.NotRun, cli.LimitReached, cli.Overloaded, cli.APIFailed, cli.Refused, cli.AnswerCut, cli.ModelRefused,
		cli.DeniedTools:
		return true
	default:
		return false
	}
}

// judge returns the Result of a turn. err is the error of runTurn. If the provider emitted no Result, hasResult is
// false, and judge sets r.Err to err. If ctx has ended, judge may replace r.Err by the cause of ctx; see recut.
func judge(ctx context.Context, w *resultGuard, r cli.Result, hasResult bool, err error) cli.Result {
	if !hasResult {
		r.Err = cli.AsFailure(w.agent, err)
		if r.Err == nil && r.Text == "" {
			r.Err = cli.Failf(cli.BadOutput, w.agent, "it ended without an answer")
		}
	}
	if ctx.Err() != nil && !r.Detached && (!hasResult || r.Err != nil && !r.Aborted) {
		return recut(ctx, w.agent, r)
	}
	return r
}

// recut corrects the Result of a turn whose context has ended. It replaces the Result's error by the cause of ctx. If
// the agent itself reported a failure, recut replaces this failure only if the turn was aborted.
func recut(ctx context.Context, agent cli.Agent, r cli.Result) cli.Result {
	cut := cli.Cut(ctx, agent)
	own := r.Err != nil && !broke(r.Err) && r.Err.Kind != cli.TimedOut && r.Err.Kind != cli.UnknownFailure
	if own && !cut.Aborted {
		return r
	}
	if r.Err != nil && cut.Err != nil {
		cut.Err.Detail = r.Err.Detail
		cut.Err.Cause = errors.Join(cut.Err.Cause, r.Err.Cause)
	}
	r.Aborted, r.Detached, r.Err = cut.Aborted, cut.Detached, cut.Err
	return r
}
