package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/lang"
	"ductor/orchestrator"
)

// Options configure a Scheduler. Store, Runner, Notifier, Now, NewID and Logger are required.
type Options struct {
	Store    Store
	Runner   Runner
	Notifier Notifier
	Now      func() time.Time // the wall clock
	Zone     *time.Location   // of jobs without a zone; time.Local when nil
	Lang     *lang.Choices    // of what becomes of runs
	NewID    func() string
	Logger   *slog.Logger
	// Poll is the longest time between two reads of the clock; 15 seconds when 0.
	Poll time.Duration
}

const (
	// grace is how late a run may be and still counts as on time.
	grace = 2 * time.Minute
	// busyPoll is the longest time between two reads of the clock while turns of jobs run. Poke ends the wait early.
	busyPoll = 2 * time.Second
)

// setBack is how far the clock must go back before the next moments are computed again. Smaller steps are corrections of
// the clock. A run that happened does not happen again either way.
const setBack = time.Hour

// Scheduler runs jobs when they are due. Safe for concurrent use: a mutex serializes its operations.
type Scheduler struct {
	opts Options
	log  *slog.Logger
	poke chan struct{}
	mu   sync.Mutex // held for store writes and calls of the runner, never for a turn
}

// New makes a Scheduler. It runs no job before Run.
func New(opts Options) *Scheduler {
	opts.Zone, opts.Poll = cmp.Or(opts.Zone, time.Local), cmp.Or(opts.Poll, 15*time.Second)
	return &Scheduler{opts: opts, log: opts.Logger, poke: make(chan struct{}, 1)}
}

// now is the wall clock without its monotonic part, which stands still while the machine sleeps.
func (s *Scheduler) now() time.Time { return s.opts.Now().Round(0) }

// Run runs jobs until ctx is done. Submitted turns continue after that; the next process records their ends.
func (s *Scheduler) Run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(s.Tick(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.poke:
		}
		timer.Stop()
	}
}

// Poke makes Run tick at once, because a turn ended or a job changed. It never blocks.
func (s *Scheduler) Poke() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Tick does what is due now and returns the time until the next tick, at most Options.Poll. Run calls it.
func (s *Scheduler) Tick(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fireAll(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("start jobs that are due", "err", err)
	}
	left, err := s.followAll(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Error("advance runs of jobs", "err", err)
	}
	return s.untilNext(ctx, left)
}

// untilNext is the time until the next known moment, within bounds.
func (s *Scheduler) untilNext(ctx context.Context, left []orchestrator.JobRun) time.Duration {
	now, wait := s.now(), s.opts.Poll
	sooner := func(t time.Time) {
		if !t.IsZero() {
			wait = min(wait, max(t.Sub(now), 0))
		}
	}
	for _, r := range left {
		if r.NotBefore.After(now) {
			sooner(r.NotBefore)
		} else {
			sooner(now.Add(busyPoll))
		}
	}
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return s.opts.Poll
	}
	for _, st := range all {
		if !st.Job.Paused && st.Next.After(now) {
			sooner(st.Next)
		}
	}
	return max(wait, time.Millisecond)
}

// zone is the time zone of a job.
func (s *Scheduler) zone(j orchestrator.Job) (*time.Location, error) {
	if j.Zone == "" {
		return s.opts.Zone, nil
	}
	return schedule.Zone(j.Zone)
}

// knownZone is the time zone of a job, or that of jobs without one where this machine does not know it.
func (s *Scheduler) knownZone(j orchestrator.Job) *time.Location {
	if loc, err := s.zone(j); err == nil {
		return loc
	}
	return s.opts.Zone
}

// plan is the schedule of a job; nil for one without.
func (s *Scheduler) plan(j orchestrator.Job) (schedule.Schedule, error) {
	if j.Kind == orchestrator.JobHook {
		return nil, nil
	}
	loc, err := s.zone(j)
	if err != nil {
		return nil, err
	}
	return schedule.Parse(j.Schedule, loc, j.Created)
}

func (s *Scheduler) fireAll(ctx context.Context) error {
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	var errs []error
	for _, st := range all {
		if st.Job.Paused || st.Job.Kind == orchestrator.JobHook || st.Next.IsZero() {
			continue
		}
		if err := s.fire(ctx, st); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", st.Job.ID, err))
		}
	}
	return errors.Join(errs...)
}
