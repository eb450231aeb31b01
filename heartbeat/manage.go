package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

// Add stores a new job. It sets the creation time, and an ID if j has none. It returns an *orchestrator.BadJob if the
// job is invalid.
func (s *Scheduler) Add(ctx context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	if err := s.lock(ctx); err != nil {
		return orchestrator.JobStatus{}, err
	}
	defer s.unlock()
	if j.ID == "" {
		j.ID = orchestrator.JobID(s.opts.NewID())
	}
	j.Created, j.Configured, j.Paused = s.now(), false, false
	return s.save(ctx, withDefaults(j))
}

// Edit calls f to change a job of the conversation, and stores the result. It ignores changes of the ID, kind,
// conversation and creation time. If the schedule has changed, Edit computes the time of the next run. If f returns an
// error, the job remains unchanged. Jobs in the configuration cannot be edited: for them, Edit returns
// orchestrator.ErrJobConfigured.
func (s *Scheduler) Edit(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID,
	f func(*orchestrator.Job) error) (orchestrator.JobStatus, error) {
	if err := s.lock(ctx); err != nil {
		return orchestrator.JobStatus{}, err
	}
	defer s.unlock()
	st, err := s.Get(ctx, id, in)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	if st.Job.Configured {
		return orchestrator.JobStatus{}, orchestrator.ErrJobConfigured
	}
	j := st.Job
	if err := f(&j); err != nil {
		return orchestrator.JobStatus{}, err
	}
	j.ID, j.Kind, j.Configured, j.Conversation, j.Created = st.Job.ID, st.Job.Kind, false, st.Job.Conversation,
		st.Job.Created
	// The user granted these rights for the previous prompt and schedule, so a changed job loses them.
	if j.Rights.Of == orchestrator.RightsOfPress && (j.Prompt != st.Job.Prompt || j.Schedule != st.Job.Schedule) {
		j.Rights = orchestrator.Rights{}
	}
	j = withDefaults(j)
	if j.Schedule == st.Job.Schedule && j.Zone == st.Job.Zone && j.Paused == st.Job.Paused {
		return s.saveUnchanged(ctx, j, st)
	}
	return s.save(ctx, j)
}

// Pause prevents a job of the conversation from starting new runs until Resume is called. Runs that are already waiting
// are not affected.
func (s *Scheduler) Pause(ctx context.Context, id orchestrator.JobID,
	in orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	if err := s.lock(ctx); err != nil {
		return orchestrator.JobStatus{}, err
	}
	defer s.unlock()
	st, err := s.Get(ctx, id, in)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	st.Job.Paused = true
	return s.save(ctx, st.Job)
}

// Resume ends the pause of a job. Times during the pause do not count as missed. If the creator no longer has the right
// to run the job, the user who resumes it becomes its creator.
//
// If the only time of a job with a new creator has passed, Resume stores the job without a next run instead of
// returning an error. The new creator can then start the job manually.
func (s *Scheduler) Resume(ctx context.Context, id orchestrator.JobID,
	by orchestrator.Press) (orchestrator.JobStatus, error) {
	if err := s.lock(ctx); err != nil {
		return orchestrator.JobStatus{}, err
	}
	defer s.unlock()
	st, err := s.Get(ctx, id, by.Conversation)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	st.Job.Paused = false
	if s.mayRun(st.Job) {
		return s.save(ctx, st.Job)
	}
	st.Job.Person = by.Person
	if _, err := s.next(st.Job); errors.Is(err, schedule.ErrPassed) {
		st.Next = time.Time{}
		return s.saveUnchanged(ctx, st.Job, st)
	}
	return s.save(ctx, st.Job)
}

// Delete deletes a job of the conversation. A turn of the job that is queued or running continues, and so does a turn
// that Tick submits at this moment.
func (s *Scheduler) Delete(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	st, err := s.Get(ctx, id, in)
	if err != nil {
		return err
	}
	if st.Job.Configured {
		return orchestrator.ErrJobConfigured
	}
	return s.opts.Store.DeleteJob(ctx, id)
}

// RunNow starts a run of a job in the conversation, even if the job is paused or has quiet hours. The run starts when
// the job's open runs have ended. The job of a webhook runs with the last payload; RunNow returns ErrNotCalled if there
// is none. If the creator no longer has the right to run the job, RunNow pauses the job and returns
// orchestrator.ErrNotAllowed.
//
// RunNow returns orchestrator.ErrRepeated in these cases:
//   - An earlier call had the same key, which identifies the user's request.
//   - A run that a user started is still open.
//   - A user started a run less than doubleTap ago. The second tap may have been on a new button that replaced the
//     first.
func (s *Scheduler) RunNow(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID,
	key string) (orchestrator.JobRun, error) {
	defer s.Poke()
	if err := s.lock(ctx); err != nil {
		return orchestrator.JobRun{}, err
	}
	defer s.unlock()
	st, err := s.Get(ctx, id, in)
	if err != nil {
		return orchestrator.JobRun{}, err
	}
	if !s.mayRun(st.Job) {
		return orchestrator.JobRun{}, cmp.Or(s.pauseAbandoned(ctx, st), orchestrator.ErrNotAllowed)
	}
	if st.Open >= orchestrator.MostQueuedRuns {
		return orchestrator.JobRun{}, fmt.Errorf("%d runs of it wait already: %w", st.Open, orchestrator.ErrJobsFull)
	}
	runs, err := s.opts.Store.Runs(ctx, id, orchestrator.MostQueuedRuns)
	if err != nil {
		return orchestrator.JobRun{}, err
	}
	if slices.ContainsFunc(runs, func(r orchestrator.JobRun) bool {
		again := r.State.Open() || s.now().Sub(r.Due).Abs() < doubleTap
		return r.Cause == orchestrator.CauseManual && again
	}) {
		return orchestrator.JobRun{}, orchestrator.ErrRepeated
	}
	if key == "" {
		key = s.opts.NewID()
	}
	r := newRun(st.Job, orchestrator.CauseManual, s.now(), 1)
	r.ID = orchestrator.KeyedRun(st.Job.ID, key)
	if st.Job.Kind == orchestrator.JobHook {
		if r.Prompt, err = s.lastCall(ctx, id); err != nil {
			return orchestrator.JobRun{}, err
		}
	}
	fresh, err := s.opts.Store.RecordRuns(ctx, id, []orchestrator.JobRun{r}, st.Next, st.Planned)
	if err == nil && len(fresh) == 0 {
		err = orchestrator.ErrRepeated
	}
	return r, err
}

// doubleTap is a pause after a user has started a run. During the pause, another tap starts no second run.
const doubleTap = 5 * time.Second

// lastCall returns the prompt of a webhook's last delivery. It returns ErrNotCalled if there is none.
func (s *Scheduler) lastCall(ctx context.Context, id orchestrator.JobID) (string, error) {
	runs, err := s.opts.Store.Runs(ctx, id, orchestrator.MostQueuedRuns)
	if err != nil {
		return "", err
	}
	for _, r := range runs {
		if r.Prompt != "" {
			return r.Prompt, nil
		}
	}
	return "", ErrNotCalled
}

// List returns the jobs of a conversation, the oldest first.
func (s *Scheduler) List(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.JobStatus, error) {
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(st orchestrator.JobStatus) bool { return st.Job.Conversation != in }), nil
}

// Runs returns the last runs of a job in the conversation, the newest first.
func (s *Scheduler) Runs(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID,
	limit int) ([]orchestrator.JobRun, error) {
	if _, err := s.Get(ctx, id, in); err != nil {
		return nil, err
	}
	return s.opts.Store.Runs(ctx, id, limit)
}

// Sync stores the jobs in the configuration. It identifies them by their names. It adds new jobs, updates changed ones
// and deletes missing ones. A job that a user has paused remains paused. If Telegram gave a group a new ID, the group's
// jobs get this ID. If a job is invalid, Sync stores nothing.
func (s *Scheduler) Sync(ctx context.Context, jobs []orchestrator.Job) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	defer s.Poke()
	wanted := map[orchestrator.JobID]bool{}
	for i, j := range jobs {
		j.ID, j.Configured, j.Created = orchestrator.ConfiguredJob(j.Kind, j.Name), true, s.now()
		var err error
		if j.Conversation.Chat, err = s.opts.Store.CurrentChat(ctx, j.Conversation.Chat); err != nil {
			return err
		}
		jobs[i] = withDefaults(j)
		if wanted[j.ID] {
			return fmt.Errorf("two jobs are called %q", j.Name)
		}
		wanted[j.ID] = true
		if _, err := s.next(jobs[i]); err != nil {
			return fmt.Errorf("job %q: %w", j.Name, err)
		}
	}
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return err
	}
	known := map[orchestrator.JobID]orchestrator.JobStatus{}
	for _, st := range all {
		known[st.Job.ID] = st
		if st.Job.Configured && !wanted[st.Job.ID] {
			if err := s.opts.Store.DeleteJob(ctx, st.Job.ID); err != nil {
				return err
			}
		}
	}
	for _, j := range jobs {
		if err := s.syncOne(ctx, j, known); err != nil {
			return fmt.Errorf("job %q: %w", j.Name, err)
		}
	}
	return nil
}

func (s *Scheduler) syncOne(ctx context.Context, j orchestrator.Job,
	known map[orchestrator.JobID]orchestrator.JobStatus) error {
	old, there := known[j.ID]
	if there {
		j.Created, j.Paused = old.Job.Created, old.Job.Paused
	}
	if there && sameJob(j, old.Job) {
		// Do not save an unchanged job: save would compute the time of the next run again, and lose missed runs.
		return nil
	}
	_, err := s.save(ctx, j)
	return err
}

// saveUnchanged stores a job whose schedule has not changed. It keeps the time of the next run even if that time has
// passed, so that the scheduler still handles it.
func (s *Scheduler) saveUnchanged(ctx context.Context, j orchestrator.Job,
	st orchestrator.JobStatus) (orchestrator.JobStatus, error) {
	if err := validate(j); err != nil {
		return orchestrator.JobStatus{}, s.badJob(j.Conversation, err)
	}
	if err := s.opts.Store.SaveJob(ctx, j, st.Next, st.Planned); err != nil {
		return orchestrator.JobStatus{}, err
	}
	return s.opts.Store.Job(ctx, j.ID)
}

// save stores a job with defaults. It also computes and stores the time of the next run.
func (s *Scheduler) save(ctx context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	next, err := s.next(j)
	if err != nil {
		return orchestrator.JobStatus{}, s.badJob(j.Conversation, err)
	}
	if err := s.opts.Store.SaveJob(ctx, j, next, s.now()); err != nil {
		return orchestrator.JobStatus{}, err
	}
	s.Poke()
	return s.opts.Store.Job(ctx, j.ID)
}

// next validates a job and computes the time of its next run. If the job's only time has passed, next returns an error,
// or the zero time for a configured or paused job.
func (s *Scheduler) next(j orchestrator.Job) (time.Time, error) {
	if err := validate(j); err != nil {
		return time.Time{}, err
	}
	plan, err := s.plan(j)
	if err != nil || plan == nil {
		return time.Time{}, err
	}
	err = schedule.Check(plan, s.now())
	if schedule.Once(plan) && errors.Is(err, schedule.ErrNever) && (j.Configured || j.Paused) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return plan.Next(s.now()), nil
}

// Get returns a job of the conversation. It returns orchestrator.ErrNoJob if the job does not exist, and
// orchestrator.ErrElsewhere if it belongs to another conversation.
func (s *Scheduler) Get(ctx context.Context, id orchestrator.JobID,
	in orchestrator.ConversationID) (orchestrator.JobStatus, error) {
	st, err := s.opts.Store.Job(ctx, id)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	if st.Job.Conversation != in {
		return orchestrator.JobStatus{}, orchestrator.ErrElsewhere
	}
	return st, nil
}
