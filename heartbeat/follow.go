package heartbeat

import (
	"context"
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
	ahead := map[JobID]bool{} // a run of the job is asked for, or waits before this one
	for _, r := range runs {
		ahead[r.Job] = ahead[r.Job] || r.State == RunAsked
	}
	for _, r := range runs {
		if ctx.Err() != nil {
			return left, errors.Join(errs...)
		}
		if r.State == RunWaiting && ahead[r.Job] {
			continue // its turn comes
		}
		held := r.State == RunWaiting && r.NotBefore.After(s.now())
		after, err := s.follow(ctx, r)
		if err != nil {
			if !errors.Is(err, ErrLater) {
				errs = append(errs, fmt.Errorf("run %s: %w", r.ID, err))
			}
			after.NotBefore = s.now().Add(askAgain)
		}
		switch {
		case after.State.Open() && !held:
			ahead[r.Job] = true // one that is held back does not hold back what a person wants now
		case r.State == RunAsked: // it ended: the next one need not wait for the chat to show that
			ahead[r.Job] = false
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
		if r, err = s.ask(ctx, st, r); err != nil {
			return r, err
		}
	}
	if r.State == RunAsked {
		if r, err = s.look(ctx, st, r); err != nil {
			return r, err
		}
	}
	if r.State.Open() || r.Told {
		return r, nil
	}
	return s.tell(ctx, r)
}

// ask has the turn of a waiting run queued. A crash after it was and before the store knows has it asked again
// under the same id, which changes nothing.
func (s *Scheduler) ask(ctx context.Context, st Standing, r Run) (Run, error) {
	j := st.Job
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
		return r, s.opts.Store.MoveRun(ctx, r) // so that it is seen to be held back, and holds back nobody
	}
	if busy, err := s.inUse(ctx, j); err != nil || busy {
		return s.later(ctx, r, now), err
	}
	err := s.opts.Runner.Ask(ctx, s.order(st, r))
	switch {
	case errors.Is(err, ErrNoRoom):
		return s.later(ctx, r, now), nil
	case errors.Is(err, ErrRefused):
		r.Reason = "It did not run. " + strings.TrimSuffix(err.Error(), ": "+ErrRefused.Error())
		return s.end(ctx, r, RunFailed, News{})
	case err != nil:
		return s.later(ctx, r, now), fmt.Errorf("ask for the turn: %w", err)
	}
	r.State, r.Asked = RunAsked, now
	return r, s.opts.Store.MoveRun(ctx, r)
}

func (s *Scheduler) order(st Standing, r Run) Order {
	j := st.Job
	o := Order{
		Turn: r.Turn(), Job: j.ID, Kind: j.Kind, Conversation: j.Conversation, Person: j.Person, Prompt: r.Prompt,
		Session: j.Session, Agent: j.Agent, Model: j.Model, Effort: j.Effort, Dir: j.Dir, Sandbox: j.Sandbox, Timeout: j.Timeout,
		Rights: j.Rights, OKWord: j.OKWord, Title: s.title(j, r),
	}
	if quietly(j, r) {
		o.Known = st.Digest
	}
	if r.Cause == CauseHand {
		o.OKWord = "" // somebody waits for the answer
	}
	if r.Attempt <= j.Retries {
		o.Then = fmt.Sprintf("It is tried again in %s: try %d of %d.", spanText(backoff(j, r)), r.Attempt+1, j.Retries+1)
	}
	return o
}

// quietly says whether an answer that the chat has is passed over. One that a person waits for is not, nor what a
// program outside asked for: each of its calls is another event. After a failure that the chat knows of, it is news.
func quietly(j Job, r Run) bool { return r.Cause != CauseHand && j.Kind != KindHook && r.Attempt == 1 }

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
		return s.end(ctx, r, RunFailed, News{})
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
		return s.end(ctx, r, RunAborted, st.News)
	}
	r.Text, r.Reason = cli.Shorten(t.Outcome.Text, textMost), t.Outcome.Failure
	if t.State == orchestrator.TurnFailed && r.Attempt <= st.Job.Retries {
		return s.retry(ctx, st.Job, r)
	}
	return s.end(ctx, r, RunFailed, News{})
}

// retry has a failed run wait for its next attempt. A turn that a crash interrupted is not tried again: what it
// did until then stands.
func (s *Scheduler) retry(ctx context.Context, j Job, r Run) (Run, error) {
	r.NotBefore = s.now().Add(backoff(j, r))
	r.Attempt++
	r.State, r.Asked = RunWaiting, time.Time{}
	s.log.Info("job is tried again", "job", j.ID, "run", r.ID, "attempt", r.Attempt, "at", r.NotBefore, "reason", r.Reason)
	return r, s.opts.Store.MoveRun(ctx, r)
}

// backoff is the wait after an attempt that failed.
func backoff(j Job, r Run) time.Duration { return min(j.Backoff<<(r.Attempt-1), MostBackoff) }

func (s *Scheduler) done(ctx context.Context, st Standing, r Run, text string) (Run, error) {
	r.Text, r.Reason = cli.Shorten(text, textMost), ""
	if orchestrator.OnlyWord(text, st.Job.OKWord) {
		r.Told = true
		return s.end(ctx, r, RunDone, st.News)
	}
	digest := orchestrator.Digest(text)
	r.Changed = digest != st.Digest
	if r.Changed || !quietly(st.Job, r) {
		return s.end(ctx, r, RunDone, News{Digest: digest, Shown: r.Turn()})
	}
	news := st.News
	news.Same++
	return s.end(ctx, r, RunDone, news)
}

// end records how a run ended, and what the chat is told last by then.
func (s *Scheduler) end(ctx context.Context, r Run, state RunState, news News) (Run, error) {
	ended := r
	ended.State, ended.Ended = state, s.now()
	if err := s.opts.Store.EndRun(ctx, ended, news); err != nil {
		return r, err
	}
	s.log.Info("job ran", "job", r.Job, "run", r.ID, "state", state, "attempt", r.Attempt, "cost_usd", r.CostUSD)
	return ended, nil
}
