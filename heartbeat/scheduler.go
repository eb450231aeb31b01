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

// Options configures a Scheduler. Store, Runner, Notifier, Now, NewID and Logger are required.
type Options struct {
	Store    Store
	Runner   Runner
	Notifier Notifier
	Now      func() time.Time // the wall clock
	Zone     *time.Location   // of jobs without a zone; default: time.Local
	Lang     *lang.Choices    // for messages about runs
	NewID    func() string
	Logger   *slog.Logger
	// Directory returns the absolute path of a directory, or an error if jobs must not work there; see
	// conversation.Engine.Directory. Only jobs with a directory need it.
	Directory func(path string) (string, error)
	// Stale is the age at which a turn counts as stale. Time limits of jobs must be shorter. 0 means never.
	Stale time.Duration
	// Audit records what users do with jobs. nil records nothing.
	Audit func(ctx context.Context, entries ...orchestrator.AuditEntry) error
	// Poll is the longest time between two reads of the clock. The default is 15 seconds.
	Poll time.Duration
}

const (
	// grace is how late a run may be and still count as on time.
	grace = 2 * time.Minute
	// busyPoll is the longest time between two reads of the clock while turns of jobs are running. Poke ends the wait
	// early.
	busyPoll = 2 * time.Second
)

// setBack is how far the clock must go back before the scheduler recomputes the next times. Smaller steps are
// corrections of the clock. In both cases no run happens twice.
const setBack = time.Hour

// Scheduler runs jobs when they are due, and lets users manage them. Safe for concurrent use: a mutex serializes its
// operations.
type Scheduler struct {
	opts Options
	log  *slog.Logger
	poke chan struct{}
	mu   sync.Mutex // held during store writes and calls of the runner, never during a turn
}

// New returns a Scheduler. It starts no jobs before Run.
func New(opts Options) *Scheduler {
	opts.Zone, opts.Poll = cmp.Or(opts.Zone, time.Local), cmp.Or(opts.Poll, 15*time.Second)
	return &Scheduler{opts: opts, log: opts.Logger, poke: make(chan struct{}, 1)}
}

// now returns the wall clock without its monotonic part, which stops while the machine sleeps.
func (s *Scheduler) now() time.Time { return s.opts.Now().Round(0) }

// Run runs jobs until ctx is done. Submitted turns then continue; the next process records their ends.
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

// Poke makes Run tick immediately, because a turn ended or a job changed. It never blocks.
func (s *Scheduler) Poke() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Tick does everything that is due and returns the time until the next tick, at most Options.Poll. Run calls it.
func (s *Scheduler) Tick(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fireAll(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("start due jobs", "err", err)
	}
	left, err := s.advanceRuns(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Error("advance runs of jobs", "err", err)
	}
	return s.untilNext(ctx, left)
}

// untilNext returns the time until the next known event, at most Options.Poll.
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

func (s *Scheduler) zone(j orchestrator.Job) (*time.Location, error) {
	if j.Zone == "" {
		return s.opts.Zone, nil
	}
	return schedule.Zone(j.Zone)
}

// knownZone returns the time zone of a job, or the default one if this machine does not know the job's zone.
func (s *Scheduler) knownZone(j orchestrator.Job) *time.Location {
	if loc, err := s.zone(j); err == nil {
		return loc
	}
	return s.opts.Zone
}

// plan returns the schedule of a job, or nil if a webhook starts it.
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
