package heartbeat

import (
	"context"
	"strconv"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

// fire stores the due runs of a job and the time of its next run, in one transaction. The turns of the runs are
// submitted later. If ductor crashes, either the runs are stored, or the job is still due.
func (s *Scheduler) fire(ctx context.Context, st orchestrator.JobStatus) error {
	now := s.now()
	back := now.Add(setBack).Before(st.Planned)
	if st.Next.After(now) && !back {
		return nil
	}
	plan, err := s.plan(st.Job)
	if err != nil {
		return err
	}
	next := plan.Next(now)
	if st.Next.After(now) {
		// The clock was set back by a lot, so only compute the time of the next run. A time that comes twice starts
		// only one run, because the ID of a run depends on its time.
		_, err := s.opts.Store.RecordRuns(ctx, st.Job.ID, nil, next, now)
		return err
	}
	if !s.mayRun(st.Job) {
		return s.refuseDue(ctx, st, next, now)
	}
	runs := s.holdForQuietHours(st.Job, s.skipOverlapping(st, s.dueRuns(st, plan, now)), now)
	fresh, err := s.opts.Store.RecordRuns(ctx, st.Job.ID, runs, next, now)
	for _, r := range fresh {
		s.log.Info("job is due", "job", st.Job.ID, "run", r.ID, "state", r.State, "reason", r.Result.Reason)
	}
	return err
}

// dueRuns returns the runs for all times of a job up to now. If a time is late, the job's policy for missed runs
// (Job.Missed) decides whether it gets a run.
func (s *Scheduler) dueRuns(st orchestrator.JobStatus, plan schedule.Schedule, now time.Time) []orchestrator.JobRun {
	moments, count := momentsUntil(plan, st.Next, now)
	lateCount := len(moments)
	for lateCount > 0 && now.Sub(moments[lateCount-1]) <= grace {
		lateCount--
	}
	late, fresh := moments[:lateCount], moments[lateCount:]
	missed := count - len(fresh)
	var runs []orchestrator.JobRun
	switch {
	case missed == 0:
	case st.Job.Missed == orchestrator.MissedAll:
		if rest := missed - len(late); rest > 0 {
			runs = append(runs, skipped(st.Job, st.Next, rest, orchestrator.ReasonMissedMany))
		}
		for _, at := range late {
			runs = append(runs, newRun(st.Job, orchestrator.CauseMissed, at, 1))
		}
	case st.Job.Missed == orchestrator.MissedSkip:
		last := st.Next
		if len(late) > 0 {
			last = late[len(late)-1]
		}
		runs = append(runs, skipped(st.Job, last, missed, orchestrator.ReasonMissed))
	// A single run replaces the runs of all times, even of the times that are not late.
	default:
		last := moments[len(moments)-1]
		fresh = nil
		runs = append(runs, newRun(st.Job, orchestrator.CauseMissed, last, count))
	}
	for _, at := range fresh {
		runs = append(runs, newRun(st.Job, orchestrator.CauseSchedule, at, 1))
	}
	return runs
}

const maxCounted = 5000

// momentsUntil returns the times of a plan from start to now, but only the latest MostMissed of them. count is the
// number of all these times, at most maxCounted. start itself must be a time of the plan.
func momentsUntil(plan schedule.Schedule, start, now time.Time) (moments []time.Time, count int) {
	t := start
	for count < maxCounted && !t.IsZero() && !t.After(now) {
		moments = append(moments, t)
		count++
		t = plan.Next(t)
	}
	for window := time.Hour; count == maxCounted && window > 0; window *= 2 {
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

func newRun(j orchestrator.Job, cause orchestrator.JobCause, due time.Time, standsFor int) orchestrator.JobRun {
	return orchestrator.JobRun{ID: orchestrator.DueRun(j.ID, due), Job: j.ID, Cause: cause, Due: due,
		StandsFor: standsFor, Prompt: j.Prompt,
		Attempt: 1, State: orchestrator.RunWaiting}
}

func skipped(j orchestrator.Job, due time.Time, standsFor int, reason orchestrator.RunReason) orchestrator.JobRun {
	r := newRun(j, orchestrator.CauseMissed, due, standsFor)
	return skip(r, due, reason)
}

func skip(r orchestrator.JobRun, at time.Time, reason orchestrator.RunReason) orchestrator.JobRun {
	r.State, r.Result.Reason = orchestrator.RunSkipped, string(reason)
	r.Ended, r.Result.Notified, r.Prompt = at, true, ""
	return r
}

// skipOverlapping marks a run as skipped in two cases: another run of the job is open and the job allows no overlap, or
// too many runs of the job are waiting. The limit of waiting runs is higher for late runs of a job with
// orchestrator.MissedAll.
func (s *Scheduler) skipOverlapping(st orchestrator.JobStatus, runs []orchestrator.JobRun) []orchestrator.JobRun {
	open := st.Open
	for i, r := range runs {
		if r.State != orchestrator.RunWaiting {
			continue
		}
		late := r.Cause == orchestrator.CauseMissed && st.Job.Missed == orchestrator.MissedAll
		switch {
		case late && open < orchestrator.MostQueuedRuns+MostMissed, open == 0:
			open++
		case st.Job.Overlap == orchestrator.OverlapSkip:
			runs[i] = skip(r, r.Due, orchestrator.ReasonStillOpen)
		case open >= orchestrator.MostQueuedRuns:
			runs[i] = skip(r, r.Due, orchestrator.ReasonManyWaiting.With(strconv.Itoa(open)))
		default:
			open++
		}
	}
	return runs
}

// holdForQuietHours delays runs until quiet hours end, or marks them as skipped. A delayed run counts as open. So later
// runs may be skipped because they overlap with it.
func (s *Scheduler) holdForQuietHours(j orchestrator.Job, runs []orchestrator.JobRun,
	now time.Time) []orchestrator.JobRun {
	end, quiet := schedule.QuietUntil(j.QuietFrom, j.QuietTo, now, s.knownZone(j))
	if !quiet {
		return runs
	}
	for i, r := range runs {
		switch {
		case r.State != orchestrator.RunWaiting:
		case j.QuietPolicy == orchestrator.QuietSkip:
			runs[i] = skip(r, now, orchestrator.ReasonQuietHours)
		default:
			runs[i].NotBefore = end
		}
	}
	return runs
}
