package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/orchestrator"
)

// Add checks a job, gives it its creation time, and an id if it has none, and stores it. Errors are sentences for whoever
// wrote it.
func (s *Scheduler) Add(ctx context.Context, j Job) (Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.ID == "" {
		j.ID = JobID(s.opts.NewID())
	}
	j.Created, j.Source, j.Enabled = s.now(), FromChat, true
	return s.save(ctx, j.filled())
}

// Edit changes a job of the conversation and works out anew when it is due. What f changes of id, source,
// conversation and creation is not taken, and nothing if it fails. ErrFromConfig for a job from the configuration.
func (s *Scheduler) Edit(ctx context.Context, id JobID, in orchestrator.ConversationID, f func(*Job) error) (Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.own(ctx, id, in)
	if err != nil {
		return Standing{}, err
	}
	if st.Job.Source == FromConfig {
		return Standing{}, ErrFromConfig
	}
	j := st.Job
	if err := f(&j); err != nil {
		return Standing{}, err
	}
	j.ID, j.Source, j.Conversation, j.Created = st.Job.ID, st.Job.Source, st.Job.Conversation, st.Job.Created
	j = j.filled()
	if j.Schedule == st.Job.Schedule && j.Zone == st.Job.Zone && j.Enabled == st.Job.Enabled {
		return s.keep(ctx, j, st)
	}
	return s.save(ctx, j)
}

// Pause has a job of the conversation not run until Resume. Runs that wait for their time are still run.
func (s *Scheduler) Pause(ctx context.Context, id JobID, in orchestrator.ConversationID) (Standing, error) {
	return s.enable(ctx, id, in, func(j *Job) { j.Enabled = false })
}

// Resume has a paused job run again, from its next moment on: pausing misses nothing.
func (s *Scheduler) Resume(ctx context.Context, id JobID, in orchestrator.ConversationID) (Standing, error) {
	return s.enable(ctx, id, in, func(j *Job) { j.Enabled = true })
}

func (s *Scheduler) enable(ctx context.Context, id JobID, in orchestrator.ConversationID, f func(*Job)) (Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.own(ctx, id, in)
	if err != nil {
		return Standing{}, err
	}
	f(&st.Job)
	return s.save(ctx, st.Job)
}

// Delete forgets a job of the conversation. A turn of it that runs goes on.
func (s *Scheduler) Delete(ctx context.Context, id JobID, in orchestrator.ConversationID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.own(ctx, id, in)
	if err != nil {
		return err
	}
	if st.Job.Source == FromConfig {
		return ErrFromConfig
	}
	return s.opts.Store.DeleteJob(ctx, id)
}

// RunNow has a job of the conversation run now, paused or not and in quiet hours too, after what runs of it.
// Equal keys run it once, and then orchestrator.ErrRepeated comes with the run. A webhook's job runs with the last payload;
// ErrNotCalled if there was none.
func (s *Scheduler) RunNow(ctx context.Context, id JobID, in orchestrator.ConversationID, key string) (Run, error) {
	defer s.Poke()
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.own(ctx, id, in)
	if err != nil {
		return Run{}, err
	}
	if st.Open >= MostQueued {
		return Run{}, fmt.Errorf("%d runs of it wait already: %w", st.Open, ErrNoRoom)
	}
	if key == "" {
		key = s.opts.NewID()
	}
	r := newRun(st.Job, CauseHand, s.now(), 1)
	r.ID = handID(st.Job.ID, key)
	if st.Job.Kind == KindHook {
		if r.Prompt, err = s.lastCall(ctx, id); err != nil {
			return Run{}, err
		}
	}
	fresh, err := s.opts.Store.RecordRuns(ctx, id, []Run{r}, st.Next, st.Reckoned)
	if err == nil && len(fresh) == 0 {
		err = orchestrator.ErrRepeated
	}
	return r, err
}

// lastCall is what the last delivery of a webhook asked: without one there is nothing to run.
func (s *Scheduler) lastCall(ctx context.Context, id JobID) (string, error) {
	runs, err := s.opts.Store.Runs(ctx, id, MostQueued)
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

// List is the jobs of a conversation in the order they were made, with next run, last result and cost.
func (s *Scheduler) List(ctx context.Context, in orchestrator.ConversationID) ([]Standing, error) {
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(st Standing) bool { return st.Job.Conversation != in }), nil
}

// Get is one job of a conversation; ErrNoJob, or orchestrator.ErrElsewhere for one of another.
func (s *Scheduler) Get(ctx context.Context, id JobID, in orchestrator.ConversationID) (Standing, error) {
	return s.own(ctx, id, in)
}

// Runs lists the last runs of a job of a conversation, newest first.
func (s *Scheduler) Runs(ctx context.Context, id JobID, in orchestrator.ConversationID, limit int) ([]Run, error) {
	if _, err := s.own(ctx, id, in); err != nil {
		return nil, err
	}
	return s.opts.Store.Runs(ctx, id, limit)
}

// Sync makes the jobs of the configuration those given, by name: new ones are added, changed ones changed, others
// forgotten. One that was paused in the chat stays paused. Nothing is stored if one of them is wrong.
func (s *Scheduler) Sync(ctx context.Context, jobs []Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.Poke()
	wanted := map[JobID]bool{}
	for i, j := range jobs {
		j.ID, j.Source, j.Created = ConfigID(j.Kind, j.Name), FromConfig, s.now()
		jobs[i] = j.filled()
		if wanted[j.ID] {
			return fmt.Errorf("two jobs are called %q", j.Name)
		}
		wanted[j.ID] = true
		if _, err := s.reckon(jobs[i]); err != nil {
			return fmt.Errorf("job %q: %w", j.Name, err)
		}
	}
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return err
	}
	known := map[JobID]Standing{}
	for _, st := range all {
		known[st.Job.ID] = st
		if st.Job.Source == FromConfig && !wanted[st.Job.ID] {
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

func (s *Scheduler) syncOne(ctx context.Context, j Job, known map[JobID]Standing) error {
	old, there := known[j.ID]
	if there {
		j.Created, j.Enabled = old.Job.Created, j.Enabled && old.Job.Enabled
	}
	if there && j.equal(old.Job) {
		return nil // what is due, or was missed, stays so
	}
	_, err := s.save(ctx, j)
	return err
}

// ConfigID is the id of a job from the configuration.
func ConfigID(kind Kind, name string) JobID {
	if kind == KindHook || kind == KindPulse {
		return JobID(string(kind) + "/" + name)
	}
	return JobID("config/" + name)
}

// keep stores a job that is due as it was: what is due this moment is not lost by a change of its prompt.
func (s *Scheduler) keep(ctx context.Context, j Job, st Standing) (Standing, error) {
	if err := j.check(); err != nil {
		return Standing{}, &wrongJob{err}
	}
	if err := s.opts.Store.SaveJob(ctx, j, st.Next, st.Reckoned); err != nil {
		return Standing{}, err
	}
	return s.opts.Store.Job(ctx, j.ID)
}

// save stores a filled job, and works out when it is due.
func (s *Scheduler) save(ctx context.Context, j Job) (Standing, error) {
	next, err := s.reckon(j)
	if err != nil {
		return Standing{}, &wrongJob{err}
	}
	if err := s.opts.Store.SaveJob(ctx, j, next, s.now()); err != nil {
		return Standing{}, err
	}
	s.Poke()
	return s.opts.Store.Job(ctx, j.ID)
}

// reckon checks a job and says when it is due next; a job for a moment that is over is due no more.
func (s *Scheduler) reckon(j Job) (time.Time, error) {
	if err := j.check(); err != nil {
		return time.Time{}, err
	}
	plan, err := s.plan(j)
	if err != nil || plan == nil {
		return time.Time{}, err
	}
	err = checkPlan(plan, s.now())
	if _, once := plan.(at); once && errors.Is(err, ErrNever) && (j.Source == FromConfig || !j.Enabled) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return plan.Next(s.now()), nil
}

func (s *Scheduler) own(ctx context.Context, id JobID, in orchestrator.ConversationID) (Standing, error) {
	st, err := s.opts.Store.Job(ctx, id)
	if err != nil {
		return Standing{}, err
	}
	if st.Job.Conversation != in {
		return Standing{}, orchestrator.ErrElsewhere
	}
	return st, nil
}
