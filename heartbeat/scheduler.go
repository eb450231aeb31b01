package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Options configure a Scheduler. Store, Runner, Notifier, Now, NewID and Logger are required.
type Options struct {
	Store    Store
	Runner   Runner
	Notifier Notifier
	Now      func() time.Time // the wall clock
	Zone     *time.Location   // of jobs that name none; time.Local when nil
	NewID    func() string
	Logger   *slog.Logger

	// Grace is how late a run may be and still counts as on time; DefaultGrace when 0.
	Grace time.Duration
	// Nap is the longest time between two looks at the clock; DefaultNap when 0.
	Nap time.Duration
	// Watch is the same while turns of jobs run; DefaultWatch when 0. Poke spares the wait.
	Watch time.Duration
}

// Defaults of Options.
const (
	DefaultGrace = 2 * time.Minute
	DefaultNap   = 15 * time.Second
	DefaultWatch = 2 * time.Second
)

// setBack is how far the clock must go back before what is due next is worked out anew. Less is how clocks are
// corrected; a run that happened does not happen again either way.
const setBack = time.Hour

// Scheduler has jobs run when they are due. Safe for concurrent use; what it does, it does one at a time.
type Scheduler struct {
	opts Options
	log  *slog.Logger
	poke chan struct{}
	mu   sync.Mutex // held for store writes and calls of the runner, never for a turn
}

// New makes a Scheduler. Nothing happens before Run.
func New(opts Options) *Scheduler {
	if opts.Zone == nil {
		opts.Zone = time.Local
	}
	if opts.Grace <= 0 {
		opts.Grace = DefaultGrace
	}
	if opts.Nap <= 0 {
		opts.Nap = DefaultNap
	}
	if opts.Watch <= 0 {
		opts.Watch = DefaultWatch
	}
	return &Scheduler{opts: opts, log: opts.Logger, poke: make(chan struct{}, 1)}
}

// now is the wall clock without its monotonic part, which stands still while the machine sleeps.
func (s *Scheduler) now() time.Time { return s.opts.Now().Round(0) }

// Run has jobs run until ctx is done. Turns that were asked for go on then; their ends are seen to after the
// next start.
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

// Poke has Run look at once: a turn ended, or something changed. It never blocks.
func (s *Scheduler) Poke() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Tick does what there is to do now and says how long nothing will be, at most Options.Nap. Run calls it.
func (s *Scheduler) Tick(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fireAll(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("look for jobs that are due", "err", err)
	}
	left, err := s.followAll(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Error("see to runs of jobs", "err", err)
	}
	return s.nap(ctx, left)
}

// nap is the time to the next moment that is known, within bounds.
func (s *Scheduler) nap(ctx context.Context, left []Run) time.Duration {
	now, wait := s.now(), s.opts.Nap
	sooner := func(t time.Time) {
		if !t.IsZero() {
			wait = min(wait, max(t.Sub(now), 0))
		}
	}
	for _, r := range left {
		if r.NotBefore.After(now) {
			sooner(r.NotBefore)
		} else {
			sooner(now.Add(s.opts.Watch))
		}
	}
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return s.opts.Nap
	}
	for _, st := range all {
		if st.Job.Enabled && st.Next.After(now) {
			sooner(st.Next)
		}
	}
	return max(wait, time.Millisecond)
}

// zone is the time zone of a job.
func (s *Scheduler) zone(j Job) (*time.Location, error) {
	if j.Zone == "" {
		return s.opts.Zone, nil
	}
	return loadZone(j.Zone)
}

// plan is the schedule of a job; nil for one without.
func (s *Scheduler) plan(j Job) (Plan, error) {
	if j.Kind == KindHook {
		return nil, nil
	}
	loc, err := s.zone(j)
	if err != nil {
		return nil, err
	}
	return ParseSchedule(j.Schedule, loc, j.Created)
}

func (s *Scheduler) fireAll(ctx context.Context) error {
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	var errs []error
	for _, st := range all {
		if !st.Job.Enabled || st.Job.Kind == KindHook || st.Next.IsZero() {
			continue
		}
		if err := s.fire(ctx, st); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", st.Job.ID, err))
		}
	}
	return errors.Join(errs...)
}
