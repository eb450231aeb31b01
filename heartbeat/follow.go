package heartbeat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// textMost is how much of an answer is kept with its run; the turn has all of it.
const textMost = 4 << 10

// askAgain is the wait after an order that could not be taken.
const askAgain = 15 * time.Second

// followAll takes every run one step on, the oldest first, and returns those that are not over. One that fails
// does not keep the others.
func (s *Scheduler) followAll(ctx context.Context) ([]Run, error) {
	runs, err := s.opts.Store.OpenRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var left []Run
	var errs []error
	ahead := map[JobID]bool{} // an earlier run of the job is open
	for _, r := range runs {
		if ctx.Err() != nil {
			return left, errors.Join(errs...)
		}
		if r.State.Open() && ahead[r.Job] {
			continue // its turn comes
		}
		held := r.State == RunWaiting && r.NotBefore.After(s.now())
		after, err := s.follow(ctx, r)
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", r.ID, err))
			after.NotBefore = s.now().Add(askAgain)
		}
		if after.State.Open() && !held {
			ahead[r.Job] = true // one that is held back does not hold back what a person wants now
		}
		if after.State.Open() || !after.Told {
			left = append(left, after)
		}
	}
	return left, errors.Join(errs...)
}

// follow takes a run as far as it goes now, and returns where it stands.
func (s *Scheduler) follow(ctx context.Context, r Run) (Run, error) {
	st, err := s.opts.Store.Job(ctx, r.Job)
	if err != nil {
		return r, err
	}
	if r.State == RunWaiting {
		if r, err = s.ask(ctx, st.Job, r); err != nil {
			return r, err
		}
	}
	if r.State == RunAsked {
		if r, err = s.look(ctx, st, r); err != nil {
			return r, err
		}
	}
	if !r.State.Open() && !r.Told {
		return s.tell(ctx, st.Job, r)
	}
	return r, nil
}

// ask has the turn of a waiting run queued. A crash after it was and before the store knows has it asked again
// under the same id, which changes nothing.
func (s *Scheduler) ask(ctx context.Context, j Job, r Run) (Run, error) {
	now := s.now()
	if r.NotBefore.After(now) {
		if r.NotBefore.Sub(now) <= longestHold {
			return r, nil
		}
		// The clock was set back by more than a run can be held.
		r.NotBefore = now
	}
	if end, quiet := s.quiet(j, r, now); quiet {
		r.NotBefore = end
		return r, nil
	}
	if busy, err := s.inUse(ctx, j); err != nil || busy {
		return s.later(ctx, r, now), err
	}
	err := s.opts.Runner.Ask(ctx, Order{
		Turn: r.Turn(), Job: j.ID, Kind: j.Kind, Conversation: j.Conversation, Person: j.Person, Prompt: r.Prompt,
		Session: j.Session, Agent: j.Agent, Model: j.Model, Effort: j.Effort, Dir: j.Dir, Sandbox: j.Sandbox, Timeout: j.Timeout,
		OKWord: j.OKWord,
	})
	switch {
	case errors.Is(err, ErrNoRoom):
		return s.later(ctx, r, now), nil
	case errors.Is(err, ErrRefused):
		r.Reason = strings.TrimSuffix(err.Error(), ": "+ErrRefused.Error())
		return s.end(ctx, r, RunFailed, "")
	case err != nil:
		return s.later(ctx, r, now), fmt.Errorf("ask for the turn: %w", err)
	}
	r.State, r.Asked = RunAsked, now
	return r, s.opts.Store.MoveRun(ctx, r)
}

// longestHold is the longest that a run waits: quiet hours, or the wait before a retry.
const longestHold = 25 * time.Hour

// quiet says until when a run that a webhook started has to wait. What the clock started was held as it became
// due, and what a person started is wanted now.
func (s *Scheduler) quiet(j Job, r Run, now time.Time) (time.Time, bool) {
	if r.Cause != CauseHook {
		return time.Time{}, false
	}
	loc, err := s.zone(j)
	if err != nil {
		loc = s.opts.Zone
	}
	return j.Quiet.until(now, loc)
}

// inUse says whether a proactive prompt would come between a person and an agent.
func (s *Scheduler) inUse(ctx context.Context, j Job) (bool, error) {
	if j.Kind != KindPulse {
		return false, nil
	}
	busy, err := s.opts.Runner.Busy(ctx, j.Conversation)
	if err != nil {
		return true, fmt.Errorf("look whether the conversation is busy: %w", err)
	}
	return busy, nil
}

// later has a run wait a little; not even that needs to be remembered.
func (s *Scheduler) later(_ context.Context, r Run, now time.Time) Run {
	r.NotBefore = now.Add(askAgain)
	return r
}

// look sees how the turn of a run is doing.
func (s *Scheduler) look(ctx context.Context, st Standing, r Run) (Run, error) {
	t, err := s.opts.Runner.Turn(ctx, r.Turn())
	if errors.Is(err, orchestrator.ErrNoTurn) {
		r.Reason = "Its turn is not there any more, so nobody knows how it ended."
		return s.end(ctx, r, RunFailed, "")
	}
	if err != nil {
		return r, fmt.Errorf("look at the turn: %w", err)
	}
	switch t.State {
	case orchestrator.TurnQueued, orchestrator.TurnRunning:
		return r, nil
	}
	r.CostUSD += t.Outcome.CostUSD
	switch t.State {
	case orchestrator.TurnDone:
		return s.done(ctx, st, r, t.Outcome.Text)
	case orchestrator.TurnAborted, orchestrator.TurnCancelled, orchestrator.TurnSteered:
		r.Reason, r.Told = "Somebody ended it.", true
		return s.end(ctx, r, RunAborted, st.Digest)
	}
	r.Text, r.Reason = cli.Shorten(t.Outcome.Text, textMost), t.Outcome.Failure
	if t.State == orchestrator.TurnFailed && r.Attempt <= st.Job.Retries {
		return s.retry(ctx, st.Job, r)
	}
	return s.end(ctx, r, RunFailed, "")
}

// retry has a failed run wait for its next attempt. A turn that a crash interrupted is not tried again: what it
// did until then stands.
func (s *Scheduler) retry(ctx context.Context, j Job, r Run) (Run, error) {
	r.NotBefore = s.now().Add(min(j.Backoff<<(r.Attempt-1), MostBackoff))
	r.Attempt++
	r.State, r.Asked = RunWaiting, time.Time{}
	s.log.Info("job is tried again", "job", j.ID, "run", r.ID, "attempt", r.Attempt, "at", r.NotBefore, "reason", r.Reason)
	return r, s.opts.Store.MoveRun(ctx, r)
}

func (s *Scheduler) done(ctx context.Context, st Standing, r Run, text string) (Run, error) {
	r.Text, r.Reason = cli.Shorten(text, textMost), ""
	if orchestrator.OnlyWord(text, st.Job.OKWord) {
		r.Told = true
		return s.end(ctx, r, RunDone, st.Digest)
	}
	digest := digestOf(text)
	r.Changed = digest != st.Digest
	return s.end(ctx, r, RunDone, digest)
}

// end records how a run ended. A failure leaves no digest: what comes after it is news.
func (s *Scheduler) end(ctx context.Context, r Run, state RunState, digest string) (Run, error) {
	ended := r
	ended.State, ended.Ended = state, s.now()
	if err := s.opts.Store.EndRun(ctx, ended, digest); err != nil {
		return r, err
	}
	s.log.Info("job ran", "job", r.Job, "run", r.ID, "state", state, "attempt", r.Attempt, "cost_usd", r.CostUSD)
	return ended, nil
}

func (s *Scheduler) tell(ctx context.Context, j Job, r Run) (Run, error) {
	silent := r.State == RunDone && !r.Changed
	if err := s.opts.Notifier.Report(ctx, Report{Job: j, Run: r, Turn: r.Turn(), Silent: silent}); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	if err := s.opts.Store.ToldRun(ctx, r.ID); err != nil {
		return r, err
	}
	r.Told = true
	return r, nil
}

// digestOf tells answers apart; white space does not.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:16])
}
