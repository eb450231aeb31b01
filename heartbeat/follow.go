package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

// submitRetry is the pause before the scheduler tries again to submit a turn.
const submitRetry = 15 * time.Second

// advanceRuns advances all open runs, the oldest first, and returns the runs that are then still open. An error of one
// run does not affect the others.
func (s *Scheduler) advanceRuns(ctx context.Context) ([]orchestrator.JobRun, error) {
	runs, err := s.opts.Store.OpenRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var left []orchestrator.JobRun
	var errs []error
	ahead := map[orchestrator.JobID]bool{} // jobs with an older run that must end first
	for _, r := range runs {
		ahead[r.Job] = ahead[r.Job] || r.State == orchestrator.RunAsked
	}
	for _, r := range runs {
		if ctx.Err() != nil {
			return left, errors.Join(errs...)
		}
		if r.State == orchestrator.RunWaiting && ahead[r.Job] {
			continue
		}
		held := r.State == orchestrator.RunWaiting && r.NotBefore.After(s.now())
		after, err := s.advanceRun(ctx, r)
		if errors.Is(err, orchestrator.ErrNoJob) {
			continue // a user has just deleted the job with its runs
		}
		if err != nil {
			if !errors.Is(err, ErrLater) {
				errs = append(errs, fmt.Errorf("run %s: %w", r.ID, err))
			}
			after.NotBefore = s.now().Add(submitRetry)
		}
		switch {
		case after.State.Open() && !held:
			// Later runs of the job must wait for this run, unless this run is waiting for its NotBefore.
			ahead[r.Job] = true
		// The turn of this run has ended. Later runs of the job need not wait until the chat shows its result.
		case r.State == orchestrator.RunAsked:
			ahead[r.Job] = false
		}
		if after.State.Open() || !after.Result.Notified {
			left = append(left, after)
		}
	}
	return left, errors.Join(errs...)
}

// advanceRun performs all steps of a run that are possible now: it submits the turn, records the end of the turn, or
// reports the run.
func (s *Scheduler) advanceRun(ctx context.Context, r orchestrator.JobRun) (orchestrator.JobRun, error) {
	st, err := s.opts.Store.Job(ctx, r.Job)
	if err != nil {
		return r, err
	}
	if r.State == orchestrator.RunWaiting {
		if r, err = s.submitTurn(ctx, st, r); err != nil {
			return r, err
		}
	}
	if r.State == orchestrator.RunAsked {
		if r, err = s.checkTurn(ctx, st, r); err != nil {
			return r, err
		}
	}
	if r.State.Open() || r.Result.Notified {
		return r, nil
	}
	return s.notify(ctx, r)
}

// submitTurn submits the turn of a waiting run. If ductor crashes before it has recorded the submission, the next
// process submits the turn again. The second submission has no effect, because the turn has the same ID.
func (s *Scheduler) submitTurn(ctx context.Context, st orchestrator.JobStatus,
	r orchestrator.JobRun) (orchestrator.JobRun, error) {
	j := st.Job
	now := s.now()
	if r.NotBefore.After(now) {
		if r.NotBefore.Sub(now) <= longestHold {
			return r, nil
		}
		// The clock was set back by more than longestHold, so do not wait any longer.
		r.NotBefore = now
	}
	if end, quiet := s.quietEnd(j, r, now); quiet {
		r.NotBefore = end
		return r, s.opts.Store.MoveRun(ctx, r) // later runs of the job need not wait for this run; see advanceRuns
	}
	if busy, err := s.inUse(ctx, j); err != nil || busy {
		return delayRun(r, now), err
	}
	err := s.opts.Runner.SubmitOrder(ctx, s.order(st, r))
	switch {
	case errors.Is(err, orchestrator.ErrQueueFull):
		return delayRun(r, now), nil
	case errors.Is(err, orchestrator.ErrOutsideRoot):
		return s.failRun(ctx, r, orchestrator.ReasonOutside.With(j.Dir))
	case errors.Is(err, orchestrator.ErrNotADir):
		return s.failRun(ctx, r, orchestrator.ReasonNoDir.With(j.Dir))
	case errors.Is(err, orchestrator.ErrReplacedDir):
		return s.failRun(ctx, r, orchestrator.ReasonReplacedDir.With(j.Dir))
	case errors.Is(err, orchestrator.ErrBadChoice):
		return s.failRun(ctx, r, orchestrator.ReasonBadChoice.With(err.Error()))
	case err != nil:
		return delayRun(r, now), fmt.Errorf("submit the turn: %w", err)
	}
	r.State, r.Asked = orchestrator.RunAsked, now
	return r, s.opts.Store.MoveRun(ctx, r)
}

func (s *Scheduler) order(st orchestrator.JobStatus, r orchestrator.JobRun) orchestrator.Order {
	p := s.opts.Lang.Of(st.Job.Conversation.Chat)
	j := st.Job
	o := orchestrator.Order{
		Turn:   r.Turn(),
		Prompt: orchestrator.Prompt{Conversation: j.Conversation, Person: j.Person, Text: r.Prompt, Rights: j.Rights},
		Wants: orchestrator.Wants{
			Agent: j.Agent, Model: j.Model, Effort: j.Effort, Dir: j.Dir, Sandbox: j.Sandbox, Timeout: j.Timeout,
			Silence: j.OKWord, Title: s.title(j, r), Purpose: orchestrator.Purpose{Job: j.ID},
		},
	}
	if j.Session == orchestrator.OwnSession {
		o.Wants.Own = string(j.ID)
	}
	if skipsSame(j, r) {
		o.Wants.Known = st.Digest
	}
	if r.Cause == orchestrator.CauseManual {
		o.Wants.Silence = "" // the user who started the run is waiting for the answer
	}
	if r.Attempt <= j.Retries {
		o.Wants.Card.Then = p.Text("job.tries-again", p.Span(backoff(j, r)), r.Attempt+1, j.Retries+1)
	}
	return o
}

// skipsSame reports whether the chat omits an answer that equals the previous one. The chat always shows the answers of
// retries, of runs that users start, and of webhooks (because each call is a different event).
func skipsSame(j orchestrator.Job, r orchestrator.JobRun) bool {
	return r.Cause != orchestrator.CauseManual && j.Kind != orchestrator.JobHook && r.Attempt == 1
}

// longestHold is the longest time that a run may wait: for the end of quiet hours, or before a retry.
const longestHold = 25 * time.Hour

// quietEnd reports whether the run of a webhook must wait for the end of the job's quiet hours, and returns the time at
// which they end. For all other runs, quietEnd returns false. Scheduled runs were already delayed when they were
// stored, and a run that a user starts never waits.
func (s *Scheduler) quietEnd(j orchestrator.Job, r orchestrator.JobRun, now time.Time) (time.Time, bool) {
	if r.Cause != orchestrator.CauseHook {
		return time.Time{}, false
	}
	return schedule.QuietUntil(j.QuietFrom, j.QuietTo, now, s.knownZone(j))
}

// inUse reports whether the run of a proactive prompt must wait, because a turn of its conversation is running or
// queued.
func (s *Scheduler) inUse(ctx context.Context, j orchestrator.Job) (bool, error) {
	if j.Kind != orchestrator.JobHeartbeat {
		return false, nil
	}
	busy, err := s.opts.Runner.Busy(ctx, j.Conversation)
	if err != nil {
		return true, fmt.Errorf("check whether the conversation is busy: %w", err)
	}
	return busy, nil
}

// delayRun returns the run with a delay of submitRetry. It does not store the delay.
func delayRun(r orchestrator.JobRun, now time.Time) orchestrator.JobRun {
	r.NotBefore = now.Add(submitRetry)
	return r
}

// checkTurn ends a run if its turn has ended.
func (s *Scheduler) checkTurn(ctx context.Context, st orchestrator.JobStatus,
	r orchestrator.JobRun) (orchestrator.JobRun, error) {
	t, err := s.opts.Runner.Turn(ctx, r.Turn())
	if errors.Is(err, orchestrator.ErrNoTurn) {
		return s.failRun(ctx, r, orchestrator.ReasonTurnGone)
	}
	if err != nil {
		return r, fmt.Errorf("load the turn: %w", err)
	}
	switch t.State {
	case orchestrator.TurnQueued, orchestrator.TurnRunning:
		return r, nil
	}
	r.Result.CostUSD += t.Outcome.CostUSD
	switch t.State {
	case orchestrator.TurnDone:
		return s.finishRun(ctx, st, r, t)
	case orchestrator.TurnAborted, orchestrator.TurnCancelled, orchestrator.TurnSteered:
		r.Result.Reason, r.Result.Notified = string(orchestrator.ReasonUserEnded), true
		if t.State == orchestrator.TurnCancelled { // a user cancelled the turn, or the chat may no longer use ductor
			r.Result.Reason = string(orchestrator.ReasonTurnCancelled)
		}
		return s.endRun(ctx, r, orchestrator.RunAborted, st.JobResult)
	}
	r.Result.Text, r.Result.Reason = t.Outcome.Shown(), t.Outcome.Failure
	if t.State == orchestrator.TurnFailed && r.Attempt <= st.Job.Retries {
		return s.retry(ctx, st.Job, r)
	}
	return s.endRun(ctx, r, orchestrator.RunFailed, orchestrator.JobResult{})
}

// retry schedules the next attempt of a failed run. Do not call it for a turn that a crash interrupted, because that
// turn may already have changed something.
func (s *Scheduler) retry(ctx context.Context, j orchestrator.Job, r orchestrator.JobRun) (orchestrator.JobRun, error) {
	r.NotBefore = s.now().Add(backoff(j, r))
	r.Attempt++
	r.State, r.Asked = orchestrator.RunWaiting, time.Time{}
	s.log.Info("retry job", "job", j.ID, "run", r.ID, "attempt", r.Attempt, "at", r.NotBefore, "reason",
		r.Result.Reason)
	return r, s.opts.Store.MoveRun(ctx, r)
}

func backoff(j orchestrator.Job, r orchestrator.JobRun) time.Duration {
	return min(j.Backoff<<(r.Attempt-1), MaxBackoff)
}

// finishRun stores the answer of a run. If the answer's digest equals Wants.Known, the chat already shows the same
// answer, and finishRun only counts the repetition. Otherwise, the chat shows the answer in the card of the turn.
func (s *Scheduler) finishRun(ctx context.Context, st orchestrator.JobStatus, r orchestrator.JobRun,
	t orchestrator.Turn) (orchestrator.JobRun, error) {
	r.Result.Text, r.Result.Reason = t.Outcome.Shown(), ""
	if orchestrator.OnlyWord(t.Outcome.Text, st.Job.OKWord) {
		r.Result.Notified = true
		return s.endRun(ctx, r, orchestrator.RunDone, st.JobResult)
	}
	digest := orchestrator.Digest(t.Outcome.Text)
	r.Result.Changed = digest != st.Digest
	if digest != t.Wants.Known {
		return s.endRun(ctx, r, orchestrator.RunDone, orchestrator.JobResult{Digest: digest, Shown: r.Turn()})
	}
	result := st.JobResult
	result.Same++
	return s.endRun(ctx, r, orchestrator.RunDone, result)
}

// failRun stores that a run has failed for one of ductor's own reasons.
func (s *Scheduler) failRun(ctx context.Context, r orchestrator.JobRun,
	reason orchestrator.RunReason) (orchestrator.JobRun, error) {
	r.Result.Reason = string(reason)
	return s.endRun(ctx, r, orchestrator.RunFailed, orchestrator.JobResult{})
}

// endRun stores that a run has ended, together with the new JobResult of its job.
func (s *Scheduler) endRun(ctx context.Context, r orchestrator.JobRun, state orchestrator.JobRunState,
	result orchestrator.JobResult) (orchestrator.JobRun, error) {
	ended := r
	ended.State, ended.Ended = state, s.now()
	if err := s.opts.Store.EndRun(ctx, ended, result); err != nil {
		return r, err
	}
	s.log.Info("job ran", "job", r.Job, "run", r.ID, "state", state, "attempt", r.Attempt, "cost_usd", r.Result.CostUSD)
	return ended, nil
}
