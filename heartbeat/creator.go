package heartbeat

import (
	"context"
	"time"

	"ductor/orchestrator"
)

// mayRun reports whether the creator of a job still has the right to run the job.
func (s *Scheduler) mayRun(j orchestrator.Job) bool { return s.opts.MayRun == nil || s.opts.MayRun(j) }

// refuseDue pauses a due job whose creator no longer has the right to run the job. It records a failed run, so that the
// chat shows the reason. After a crash between the two writes, the next due run tries again.
func (s *Scheduler) refuseDue(ctx context.Context, st orchestrator.JobStatus, next, now time.Time) error {
	r := newRun(st.Job, orchestrator.CauseSchedule, st.Next, 1)
	r.State, r.Ended, r.Prompt = orchestrator.RunFailed, now, ""
	r.Result.Reason = string(orchestrator.ReasonCreatorGone)
	if _, err := s.opts.Store.RecordRuns(ctx, st.Job.ID, []orchestrator.JobRun{r}, next, now); err != nil {
		return err
	}
	st.Next, st.Planned = next, now
	return s.pauseAbandoned(ctx, st)
}

// pauseAbandoned pauses a job without a user's request, unless it is paused already. The caller has called lock.
func (s *Scheduler) pauseAbandoned(ctx context.Context, st orchestrator.JobStatus) error {
	if st.Job.Paused {
		return nil
	}
	st.Job.Paused = true
	err := s.opts.Store.SaveJob(ctx, st.Job, st.Next, st.Planned)
	_, err = s.recordChange(ctx, "paused", orchestrator.Press{Conversation: st.Job.Conversation}, st, err)
	return err
}
