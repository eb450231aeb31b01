package heartbeat

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// What the chat is told of the runs of a job.

// tell has the chat shown how a run ended.
func (s *Scheduler) tell(ctx context.Context, r Run) (Run, error) {
	st, err := s.opts.Store.Job(ctx, r.Job) // with what the run left of it
	if err != nil {
		return r, err
	}
	report := Report{Job: st.Job, Run: r, Turn: r.Turn(), News: st.News}
	switch {
	// Same is 0 where the answer was another since: what is to be edited shows that one.
	case r.State == RunDone && !r.Changed && quietly(st.Job, r) && st.Shown != "" && st.Same > 0:
		report.Silent, report.Note = true, s.sameNote(st, r)
	case r.State == RunFailed:
		report.Note = fmt.Sprintf("%s\n⚠️ %s", s.title(st.Job, r), r.Reason)
	}
	if err := s.opts.Notifier.Report(ctx, report); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	if err := s.opts.Store.ToldRun(ctx, r.ID); err != nil {
		return r, err
	}
	r.Told = true
	return r, nil
}

// sameNote says that there is nothing new, and when that was found.
func (s *Scheduler) sameNote(st Standing, r Run) string {
	note := "🔁 The same on " + s.moment(st.Job, r.Ended)
	if st.Same > 1 {
		note += fmt.Sprintf(", %d times by now", st.Same)
	}
	return note
}

// title is the first line of what the chat is shown of a run: which job it is, and what is out of the ordinary.
func (s *Scheduler) title(j Job, r Run) string {
	parts := []string{mark(j) + " " + j.Name}
	switch {
	case r.Cause == CauseMissed && r.StandsFor > 1:
		parts = append(parts, fmt.Sprintf("makes up for %d missed runs", r.StandsFor))
	case r.Cause == CauseMissed:
		parts = append(parts, "missed on "+s.moment(j, r.Due))
	}
	if r.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("try %d of %d", r.Attempt, max(j.Retries+1, r.Attempt)))
	}
	return strings.Join(parts, " · ")
}

// mark is the sign of a kind of job.
func mark(j Job) string {
	switch j.Kind {
	case KindHook:
		return "🪝"
	case KindPulse:
		return "💓"
	}
	return "⏰"
}

// moment writes a time as the clock of the job shows it.
func (s *Scheduler) moment(j Job, t time.Time) string {
	loc, err := s.zone(j)
	if err != nil {
		loc = s.opts.Zone
	}
	return Moment(t.In(loc))
}

// Moment writes a time for people, in its zone.
func Moment(t time.Time) string { return t.Format("Mon 2 Jan 15:04") }
