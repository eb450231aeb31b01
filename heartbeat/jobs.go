package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/lang"
	"ductor/orchestrator"
)

var _ orchestrator.Jobs = (*Scheduler)(nil)

func (s *Scheduler) Jobs(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	all, err := s.List(ctx, in)
	for i, st := range all {
		all[i] = s.show(st)
	}
	return all, err
}

func (s *Scheduler) Job(ctx context.Context, id orchestrator.JobID,
	in orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	return s.showResult(s.Get(ctx, id, in))
}

func (s *Scheduler) JobRuns(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID,
	limit int) ([]orchestrator.JobRun, error) {
	st, err := s.Get(ctx, id, in)
	if err != nil {
		return nil, err
	}
	runs, err := s.Runs(ctx, id, in, limit)
	for i, r := range runs {
		runs[i] = inZone(r, s.knownZone(st.Job))
	}
	return runs, err
}

func (s *Scheduler) ReadJob(in orchestrator.ConversationID, text string) (orchestrator.Job, error) {
	p := s.opts.Lang.Of(in.Chat)
	spec, prompt, err := schedule.ParseRequest(text, s.now(), s.opts.Zone)
	if err != nil {
		return orchestrator.Job{}, s.badJob(in, err)
	}
	j := orchestrator.Job{Prompt: prompt}
	j.Schedule, j.Zone = spec.Split()
	if prompt == "" {
		when := schedule.Describe(p, j.Schedule, s.knownZone(j))
		return orchestrator.Job{}, &orchestrator.BadJob{Why: p.Text("job.no-prompt", when)}
	}
	j = withDefaults(j)
	j.When = s.scheduleText(p, j)
	return j, nil
}

func (s *Scheduler) ReadSchedule(in orchestrator.ConversationID, text, zone string) (line, named string, err error) {
	j := orchestrator.Job{}
	j.Zone = zone
	spec, err := schedule.ParseSentence(text, s.now(), s.knownZone(j))
	if err != nil {
		return "", "", s.badJob(in, err)
	}
	line, named = spec.Split()
	return line, cmp.Or(named, zone), nil
}

func (s *Scheduler) ReadDir(in orchestrator.ConversationID, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	dir, err := s.opts.Directory(path)
	p := s.opts.Lang.Of(in.Chat)
	switch {
	case errors.Is(err, orchestrator.ErrOutsideRoot):
		return "", &orchestrator.BadJob{Why: p.Text("common.outside-roots", path)}
	case err != nil:
		return "", &orchestrator.BadJob{Why: p.Text("common.no-directory", path)}
	}
	return dir, nil
}

func (s *Scheduler) CheckJob(j orchestrator.Job) (orchestrator.JobStatus, error) {
	j, err := s.validated(j)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	j.Created = s.now()
	next, err := s.next(j)
	if err != nil {
		return orchestrator.JobStatus{}, s.badJob(j.Conversation, err)
	}
	return s.show(orchestrator.JobStatus{Job: j, Next: next}), nil
}

func (s *Scheduler) AddJob(ctx context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	st, err := s.Get(ctx, j.ID, j.Conversation)
	if err == nil || !errors.Is(err, orchestrator.ErrNoJob) {
		return s.showResult(st, err)
	}
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	here, own := 0, 0
	for _, st := range all {
		if st.Job.Configured || st.Finished() {
			continue
		}
		if st.Job.Conversation == j.Conversation {
			here++
		}
		if st.Job.Person == j.Person {
			own++
		}
	}
	if here >= MostJobs || own >= MostJobsOfUser {
		return orchestrator.JobStatus{}, orchestrator.ErrJobsFull
	}
	if j, err = s.validated(j); err != nil {
		return orchestrator.JobStatus{}, err
	}
	if st, err = s.Add(ctx, j); err == nil {
		if err := s.deleteFinished(ctx, j.Person); err != nil {
			s.log.Error("delete finished jobs", "err", err) // the next AddJob tries again
		}
	}
	return s.recordChange(ctx, "added", orchestrator.Press{Conversation: j.Conversation, Person: j.Person}, st, err)
}

// deleteFinished deletes the finished jobs of a user, except for the last MostFinished. It does not delete a job with a
// result that the scheduler has not reported yet. A later call deletes it.
func (s *Scheduler) deleteFinished(ctx context.Context, person orchestrator.PersonID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return err
	}
	unreported, err := s.opts.Store.OpenRuns(ctx)
	if err != nil {
		return err
	}
	finished := slices.DeleteFunc(all, func(st orchestrator.JobStatus) bool {
		return st.Job.Configured || st.Job.Person != person || !st.Finished()
	})
	// Sort the jobs that finished last to the front. Planned of a finished job is the time at which its only run became
	// due.
	slices.SortFunc(finished, func(a, b orchestrator.JobStatus) int { return b.Planned.Compare(a.Planned) })
	for _, st := range finished[min(MostFinished, len(finished)):] {
		if slices.ContainsFunc(unreported, func(r orchestrator.JobRun) bool { return r.Job == st.Job.ID }) {
			continue
		}
		if err := s.opts.Store.DeleteJob(ctx, st.Job.ID); err != nil && !errors.Is(err, orchestrator.ErrNoJob) {
			return err
		}
		s.log.Info("deleted a finished job", "job", st.Job.ID)
	}
	return nil
}

func (s *Scheduler) EditJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press,
	change func(*orchestrator.Job) error) (orchestrator.JobStatus, error) {
	st, err := s.Edit(ctx, id, by.Conversation, func(j *orchestrator.Job) error {
		dir := j.Dir
		if err := change(j); err != nil {
			return err
		}
		checked, err := s.validated(*j)
		if j.Dir == dir {
			checked.Dir = dir // keep the user's path: an agent may have replaced the directory by a link
		}
		*j = checked
		return err
	})
	return s.recordChange(ctx, "changed", by, st, err)
}

func (s *Scheduler) PauseJob(ctx context.Context, id orchestrator.JobID,
	by orchestrator.Press) (orchestrator.JobStatus, error) {
	st, err := s.Pause(ctx, id, by.Conversation)
	return s.recordChange(ctx, "paused", by, st, err)
}

func (s *Scheduler) ResumeJob(ctx context.Context, id orchestrator.JobID,
	by orchestrator.Press) (orchestrator.JobStatus, error) {
	st, err := s.Resume(ctx, id, by)
	return s.recordChange(ctx, "resumed", by, st, err)
}

func (s *Scheduler) RunJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press,
	key string) (orchestrator.JobStatus, error) {
	_, err := s.RunNow(ctx, id, by.Conversation, key)
	p := s.opts.Lang.Of(by.Conversation.Chat)
	switch {
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return orchestrator.JobStatus{}, &orchestrator.BadJob{Why: p.Text("job.creator-gone")}
	case errors.Is(err, ErrNotCalled):
		return orchestrator.JobStatus{}, &orchestrator.BadJob{Why: p.Text("job.not-called")}
	case err != nil:
		return orchestrator.JobStatus{}, err
	}
	st, err := s.Get(ctx, id, by.Conversation)
	return s.recordChange(ctx, "ran", by, st, err)
}

func (s *Scheduler) DeleteJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) error {
	st, err := s.Get(ctx, id, by.Conversation)
	if err == nil {
		err = s.Delete(ctx, id, by.Conversation)
	}
	_, err = s.recordChange(ctx, "deleted", by, st, err)
	return err
}

// recordChange records in the audit log that a user changed a job, and returns the job's status for the chat. If err is
// not nil, it only returns err.
func (s *Scheduler) recordChange(ctx context.Context, what string, by orchestrator.Press, st orchestrator.JobStatus,
	err error) (orchestrator.JobStatus, error) {
	if st, err = s.showResult(st, err); err != nil || s.opts.Audit == nil {
		return st, err
	}
	entry := orchestrator.AuditEntry{At: s.now(), What: orchestrator.AuditJob, Conversation: by.Conversation,
		By: by.Person, Agent: st.Job.Agent, Tool: what, Title: st.Job.Name, Reason: st.Job.When}
	// Only log this error, because the change itself is already stored.
	if err := s.opts.Audit(context.WithoutCancel(ctx), entry); err != nil {
		s.log.Error("record the audit", "what", entry.What, "err", err)
	}
	return st, nil
}

// validated returns a job with its defaults and an absolute directory. It returns an *orchestrator.BadJob if agents may
// not work in the directory, or if the time limit is too long.
func (s *Scheduler) validated(j orchestrator.Job) (orchestrator.Job, error) {
	p := s.opts.Lang.Of(j.Conversation.Chat)
	if stale := s.opts.Stale; stale > 0 && j.Timeout >= stale {
		return j, &orchestrator.BadJob{Why: p.Text("job.limit-too-long", p.Span(stale))}
	}
	dir, err := s.ReadDir(j.Conversation, j.Dir)
	if err != nil {
		return j, err
	}
	j.Dir = dir
	return withDefaults(j), nil
}

// badJob converts a *lang.Error to a *orchestrator.BadJob with a text in the language of the chat. It returns other
// errors unchanged.
func (s *Scheduler) badJob(in orchestrator.ConversationID, err error) error {
	if mistake := (*lang.Error)(nil); errors.As(err, &mistake) {
		return &orchestrator.BadJob{Why: mistake.Explain(s.opts.Lang.Of(in.Chat))}
	}
	return err
}

func (s *Scheduler) showResult(st orchestrator.JobStatus, err error) (orchestrator.JobStatus, error) {
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	return s.show(st), nil
}

// show completes a status for the chat. Times are in the job's time zone, and Job.When contains the schedule in words.
// A paused job has no next run.
func (s *Scheduler) show(st orchestrator.JobStatus) orchestrator.JobStatus {
	loc := s.knownZone(st.Job)
	st.Job.When = s.scheduleText(s.opts.Lang.Of(st.Job.Conversation.Chat), st.Job)
	switch {
	case st.Job.Paused:
		st.Next = time.Time{}
	case !st.Next.IsZero():
		st.Next = st.Next.In(loc)
	}
	if st.Last != nil {
		last := inZone(*st.Last, loc)
		st.Last = &last
	}
	if st.Oldest != nil {
		oldest := inZone(*st.Oldest, loc)
		st.Oldest = &oldest
	}
	return st
}

// scheduleText returns the schedule of a job in words, with times in the job's time zone. It returns "" for a job that
// a webhook starts.
func (s *Scheduler) scheduleText(p lang.Printer, j orchestrator.Job) string {
	if j.Kind == orchestrator.JobHook {
		return ""
	}
	return strings.TrimSpace(schedule.Describe(p, j.Schedule, s.knownZone(j)) + " " + j.Zone)
}

func inZone(r orchestrator.JobRun, loc *time.Location) orchestrator.JobRun {
	r.Due, r.NotBefore = r.Due.In(loc), r.NotBefore.In(loc)
	if !r.Ended.IsZero() {
		r.Ended = r.Ended.In(loc)
	}
	return r
}
