package heartbeat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ductor/orchestrator"
)

// notify shows the end of a run in the chat.
func (s *Scheduler) notify(ctx context.Context, r orchestrator.JobRun) (orchestrator.JobRun, error) {
	st, err := s.opts.Store.Job(ctx, r.Job) // for the JobResult, which endRun has stored
	if err != nil {
		return r, err
	}
	report := Report{Job: st.Job, Run: r, Turn: r.Turn(), Result: st.JobResult}
	switch {
	// Add a note only to a message that shows the answer of this run. st.Shown is the turn whose card shows the latest
	// answer, and st.Same counts the later runs with this answer. If st.Same is 0, the card shows another answer of a
	// newer run.
	case r.State == orchestrator.RunDone && !r.Result.Changed && skipsSame(st.Job, r) && st.Shown != "" && st.Same > 0:
		report.Silent, report.Note = true, s.sameNote(st, r)
	case r.State == orchestrator.RunFailed:
		report.Note = fmt.Sprintf("%s\n⚠️ %s", s.title(st.Job, r),
			r.Result.Explain(s.opts.Lang.Of(st.Job.Conversation.Chat)))
	}
	if err := s.opts.Notifier.Report(ctx, report); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	if err := s.opts.Store.MarkNotified(ctx, r.ID); err != nil {
		return r, err
	}
	r.Result.Notified = true
	return r, nil
}

// sameNote returns a note for the chat, which says that the answer of this run has not changed.
func (s *Scheduler) sameNote(st orchestrator.JobStatus, r orchestrator.JobRun) string {
	p := s.opts.Lang.Of(st.Job.Conversation.Chat)
	at := s.moment(st.Job, r.Ended)
	if st.Same > 1 {
		return p.Text("job.same-often", st.Same, at)
	}
	return p.Text("job.same-on", at)
}

// title returns the first line of a run's message. It contains the name of the job, and marks a late run or a retry.
func (s *Scheduler) title(j orchestrator.Job, r orchestrator.JobRun) string {
	p := s.opts.Lang.Of(j.Conversation.Chat)
	parts := []string{symbol(j) + " " + j.Name}
	switch {
	case r.Cause == orchestrator.CauseMissed && r.StandsFor > 1:
		parts = append(parts, p.Text("job.makes-up", r.StandsFor))
	case r.Cause == orchestrator.CauseMissed:
		parts = append(parts, p.Text("job.missed-on", s.moment(j, r.Due)))
	}
	if r.Attempt > 1 {
		parts = append(parts, p.Text("job.try", r.Attempt, max(j.Retries+1, r.Attempt)))
	}
	return strings.Join(parts, " · ")
}

func symbol(j orchestrator.Job) string {
	switch j.Kind {
	case orchestrator.JobHook:
		return "🪝"
	case orchestrator.JobHeartbeat:
		return "💓"
	}
	return "⏰"
}

// moment formats a time in the job's time zone.
func (s *Scheduler) moment(j orchestrator.Job, t time.Time) string {
	return s.opts.Lang.Of(j.Conversation.Chat).Moment(t.In(s.knownZone(j)))
}
