package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/lang"
	"ductor/orchestrator"
)

// Jobs implements orchestrator.Jobs on top of a Scheduler. Safe for concurrent use.
type Jobs struct {
	s    *Scheduler
	opts JobsOptions
}

// JobsOptions configures Jobs. Directory is required.
type JobsOptions struct {
	// Directory returns the absolute path of a directory, or an error if jobs must not work there; see
	// conversation.Engine.Directory.
	Directory func(path string) (string, error)
	// Stale is the age at which a turn counts as stale. Time limits of jobs must be shorter. 0 means never.
	Stale time.Duration
}

var _ orchestrator.Jobs = (*Jobs)(nil)

// NewJobs returns the Jobs of a scheduler.
func NewJobs(s *Scheduler, opts JobsOptions) *Jobs { return &Jobs{s: s, opts: opts} }

func (k *Jobs) Jobs(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	all, err := k.s.List(ctx, in)
	for i, st := range all {
		all[i] = k.show(st)
	}
	return all, err
}

func (k *Jobs) Job(ctx context.Context, id orchestrator.JobID,
	in orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	return k.shown(k.s.Get(ctx, id, in))
}

func (k *Jobs) JobRuns(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID,
	limit int) ([]orchestrator.JobRun, error) {
	st, err := k.s.Get(ctx, id, in)
	if err != nil {
		return nil, err
	}
	runs, err := k.s.Runs(ctx, id, in, limit)
	for i, r := range runs {
		runs[i] = inZone(r, k.s.knownZone(st.Job))
	}
	return runs, err
}

func (k *Jobs) ReadJob(in orchestrator.ConversationID, text string) (orchestrator.Job, error) {
	p := k.s.opts.Lang.Of(in.Chat)
	spec, prompt, err := schedule.ParseRequest(text, k.s.now(), k.s.opts.Zone)
	if err != nil {
		return orchestrator.Job{}, &orchestrator.BadJob{Why: p.Text("job.unclear", sentence(err))}
	}
	j := orchestrator.Job{Prompt: prompt}
	j.Schedule, j.Zone = spec.Split()
	if prompt == "" {
		return orchestrator.Job{}, &orchestrator.BadJob{Why: p.Text("job.no-prompt", schedule.Describe(p, j.Schedule))}
	}
	j = withDefaults(j)
	j.When = scheduleText(p, j)
	return j, nil
}

func (k *Jobs) ReadSchedule(text, zone string) (line, named string, err error) {
	j := orchestrator.Job{}
	j.Zone = zone
	spec, err := schedule.ParseSentence(text, k.s.now(), k.s.knownZone(j))
	if err != nil {
		return "", "", badJob(err)
	}
	line, named = spec.Split()
	return line, cmp.Or(named, zone), nil
}

func (k *Jobs) CheckJob(j orchestrator.Job) (orchestrator.JobStatus, error) {
	j, err := k.validated(j)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	j.Created = k.s.now()
	next, err := k.s.next(j)
	if err != nil {
		return orchestrator.JobStatus{}, badJob(err)
	}
	return k.show(orchestrator.JobStatus{Job: j, Next: next}), nil
}

func (k *Jobs) AddJob(ctx context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	st, err := k.s.Get(ctx, j.ID, j.Conversation)
	if err == nil || !errors.Is(err, orchestrator.ErrNoJob) {
		return k.shown(st, err)
	}
	all, err := k.s.opts.Store.Jobs(ctx)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	here, own := 0, 0
	for _, st := range all {
		switch {
		case st.Job.Configured:
			continue
		case st.Job.Conversation == j.Conversation:
			here++
		}
		if st.Job.Person == j.Person {
			own++
		}
	}
	if here >= MostJobs || own >= MostJobsOfUser {
		return orchestrator.JobStatus{}, orchestrator.ErrJobsFull
	}
	if j, err = k.validated(j); err != nil {
		return orchestrator.JobStatus{}, err
	}
	return k.shown(k.s.Add(ctx, j))
}

func (k *Jobs) EditJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press,
	change func(*orchestrator.Job) error) (orchestrator.JobStatus, error) {
	return k.shown(k.s.Edit(ctx, id, by.Conversation, func(j *orchestrator.Job) error {
		if err := change(j); err != nil {
			return err
		}
		checked, err := k.validated(*j)
		*j = checked
		return err
	}))
}

func (k *Jobs) PauseJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) (orchestrator.JobStatus,
	error) {
	return k.shown(k.s.Pause(ctx, id, by.Conversation))
}

func (k *Jobs) ResumeJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) (orchestrator.JobStatus,
	error) {
	return k.shown(k.s.Resume(ctx, id, by.Conversation))
}

func (k *Jobs) RunJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press,
	key string) (orchestrator.JobStatus, error) {
	_, err := k.s.RunNow(ctx, id, by.Conversation, key)
	switch {
	case errors.Is(err, ErrNotCalled):
		return orchestrator.JobStatus{},
			&orchestrator.BadJob{Why: k.s.opts.Lang.Of(by.Conversation.Chat).Text("job.not-called")}
	case err != nil:
		return orchestrator.JobStatus{}, err
	}
	return k.Job(ctx, id, by.Conversation)
}

func (k *Jobs) DeleteJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) error {
	return k.s.Delete(ctx, id, by.Conversation)
}

// validated returns a job with its defaults and an absolute directory. It returns an *orchestrator.BadJob if the
// directory is outside the roots or the time limit is too long.
func (k *Jobs) validated(j orchestrator.Job) (orchestrator.Job, error) {
	p := k.s.opts.Lang.Of(j.Conversation.Chat)
	if stale := k.opts.Stale; stale > 0 && j.Timeout >= stale {
		return j, &orchestrator.BadJob{Why: p.Text("job.limit-too-long", p.Span(stale))}
	}
	if j.Dir != "" {
		dir, err := k.opts.Directory(j.Dir)
		switch {
		case errors.Is(err, orchestrator.ErrOutsideRoot):
			return j, &orchestrator.BadJob{Why: p.Text("common.outside-roots", j.Dir)}
		case err != nil:
			return j, &orchestrator.BadJob{Why: p.Text("common.no-directory", j.Dir)}
		}
		j.Dir = dir
	}
	return withDefaults(j), nil
}

// badJob converts an error into a sentence for the chat.
func badJob(err error) error { return &orchestrator.BadJob{Why: sentence(err)} }

// sentence returns the text of an error with a capital letter and a period.
func sentence(err error) string {
	why := err.Error()
	if why != "" {
		why = strings.ToUpper(why[:1]) + why[1:]
	}
	if !strings.HasSuffix(why, ".") {
		why += "."
	}
	return why
}

// shown is show for a result with an error.
func (k *Jobs) shown(st orchestrator.JobStatus, err error) (orchestrator.JobStatus, error) {
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	return k.show(st), nil
}

// show converts the times of a status to the job's time zone, and the schedule to words. A paused job has no next run.
func (k *Jobs) show(st orchestrator.JobStatus) orchestrator.JobStatus {
	loc := k.s.knownZone(st.Job)
	st.Job.When = scheduleText(k.s.opts.Lang.Of(st.Job.Conversation.Chat), st.Job)
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
	return st
}

// scheduleText returns the schedule of a job in words, or "" for a webhook's job.
func scheduleText(p lang.Printer, j orchestrator.Job) string {
	if j.Kind == orchestrator.JobHook {
		return ""
	}
	return strings.TrimSpace(schedule.Describe(p, j.Schedule) + " " + j.Zone)
}

func inZone(r orchestrator.JobRun, loc *time.Location) orchestrator.JobRun {
	r.Due = r.Due.In(loc)
	if !r.Ended.IsZero() {
		r.Ended = r.Ended.In(loc)
	}
	return r
}
