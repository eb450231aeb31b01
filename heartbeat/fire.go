package heartbeat

import (
	"context"
	"fmt"
	"time"
)

// fire records the runs of a job that are due, together with when it is due next. Only after that anything is
// asked for: a crash before it finds the job as due as it was, and one after it finds the runs.
func (s *Scheduler) fire(ctx context.Context, st Standing) error {
	now := s.now()
	back := now.Add(setBack).Before(st.Reckoned)
	if st.Next.After(now) && !back {
		return nil
	}
	plan, err := s.plan(st.Job)
	if err != nil {
		return err
	}
	next := plan.Next(now)
	if st.Next.After(now) {
		// The clock is far behind what it showed. The moments between come again; those that ran do not, for
		// their runs have names.
		_, err := s.opts.Store.RecordRuns(ctx, st.Job.ID, nil, next, now)
		return err
	}
	runs := s.due(st, plan, now)
	loc, err := s.zone(st.Job)
	if err != nil {
		return err
	}
	runs = hold(st.Job, loc, overlap(st, runs), now)
	fresh, err := s.opts.Store.RecordRuns(ctx, st.Job.ID, runs, next, now)
	for _, r := range fresh {
		s.log.Info("job is due", "job", st.Job.ID, "run", r.ID, "state", r.State, "reason", r.Reason)
	}
	return err
}

// due makes the runs of all moments up to now by the job's policy for missed ones.
func (s *Scheduler) due(st Standing, plan Plan, now time.Time) []Run {
	moments, count := momentsUntil(plan, st.Next, now)
	punctual := len(moments)
	for punctual > 0 && now.Sub(moments[punctual-1]) <= s.opts.Grace {
		punctual--
	}
	late, fresh := moments[:punctual], moments[punctual:]
	missed := count - len(fresh)
	var runs []Run
	switch {
	case missed == 0:
	case st.Job.Missed == MissedAll:
		if rest := missed - len(late); rest > 0 {
			runs = append(runs, skipped(st.Job, st.Next, rest, "Missed, and too many to make up for."))
		}
		for _, at := range late {
			runs = append(runs, newRun(st.Job, CauseMissed, at, 1))
		}
	case st.Job.Missed == MissedSkip:
		last := st.Next
		if len(late) > 0 {
			last = late[len(late)-1]
		}
		runs = append(runs, skipped(st.Job, last, missed, "Missed: ductor or its machine was not there."))
	default: // one run for all, the one that is on time if there is one
		last := moments[len(moments)-1]
		fresh = nil
		runs = append(runs, newRun(st.Job, CauseMissed, last, count))
	}
	for _, at := range fresh {
		runs = append(runs, newRun(st.Job, CauseSchedule, at, 1))
	}
	return runs
}

// countMost bounds how far moments are counted one by one.
const countMost = 5000

// momentsUntil gives the newest moments from first, which is one, to now, at most MostMissed of them, and how
// many there are in all, at least where they are very many.
func momentsUntil(plan Plan, first, now time.Time) (moments []time.Time, count int) {
	t := first
	for count < countMost && !t.IsZero() && !t.After(now) {
		moments = append(moments, t)
		count++
		t = plan.Next(t)
	}
	for window := time.Hour; count == countMost && window > 0; window *= 2 {
		from := now.Add(-window)
		if !from.After(moments[len(moments)-1]) {
			break
		}
		var newest []time.Time
		for t := plan.Next(from); !t.IsZero() && !t.After(now); t = plan.Next(t) {
			newest = append(newest, t)
		}
		if len(newest) >= MostMissed {
			moments = newest
			break
		}
	}
	return moments[max(len(moments)-MostMissed, 0):], count
}

func newRun(j Job, cause Cause, due time.Time, standsFor int) Run {
	return Run{ID: dueID(j.ID, due), Job: j.ID, Cause: cause, Due: due, StandsFor: standsFor, Prompt: j.Prompt,
		Attempt: 1, State: RunWaiting}
}

func skipped(j Job, due time.Time, standsFor int, reason string) Run {
	r := newRun(j, CauseMissed, due, standsFor)
	return r.skip(due, reason)
}

func (r Run) skip(at time.Time, reason string) Run {
	r.State, r.Reason, r.Ended, r.Told, r.Prompt = RunSkipped, reason, at, true, ""
	return r
}

// overlap skips runs while an earlier one of the job is not over, if the job wants that, and what would be too
// many to wait. Runs that are made up for wait for each other.
func overlap(st Standing, runs []Run) []Run {
	open := st.Open
	for i, r := range runs {
		if r.State != RunWaiting {
			continue
		}
		made := r.Cause == CauseMissed && st.Job.Missed == MissedAll
		switch {
		case made && open < MostQueued+MostMissed, open == 0:
			open++
		case st.Job.Overlap == OverlapSkip:
			runs[i] = r.skip(r.Due, "The run before was not over.")
		case open >= MostQueued:
			runs[i] = r.skip(r.Due, fmt.Sprintf("%d runs waited already.", open))
		default:
			open++
		}
	}
	return runs
}

// hold has runs wait for the end of quiet hours, or skips them. One that waits is not over, so what is due after
// it is the overlap policy's matter.
func hold(j Job, loc *time.Location, runs []Run, now time.Time) []Run {
	end, quiet := j.Quiet.until(now, loc)
	if !quiet {
		return runs
	}
	for i, r := range runs {
		switch {
		case r.State != RunWaiting:
		case j.Quiet.Policy == QuietSkip:
			runs[i] = r.skip(now, "It was due in quiet hours.")
		default:
			runs[i].NotBefore = end
		}
	}
	return runs
}
