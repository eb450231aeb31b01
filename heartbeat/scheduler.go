package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	Zone     *time.Location   // default time zone of jobs; nil means time.Local
	Lang     *lang.Choices    // languages of the messages about runs
	NewID    func() string
	Logger   *slog.Logger
	// Directory returns the absolute path of a job's directory. It returns an error if jobs may not work there; see
	// conversation.Engine.Directory. Directory may be nil if no job has a directory.
	Directory func(path string) (string, error)
	// MayRun reports whether the creator of a job still has the right to run the job. If not, the scheduler pauses the
	// job when it is due. A user who resumes the job becomes its creator. If MayRun is nil, all creators have the
	// right.
	MayRun func(orchestrator.Job) bool
	// Stale is the age at which Sweep ends running turns. A job's time limit must be shorter. 0 means never.
	Stale time.Duration
	// Audit records users' changes of jobs. Audit may be nil.
	Audit func(ctx context.Context, entries ...orchestrator.AuditEntry) error
	// Poll is the longest time until the scheduler reads the clock again. 0 means 15 seconds.
	Poll time.Duration
}

const (
	// grace is the maximum delay of a run that still counts as on time.
	grace = 2 * time.Minute
	// busyPoll replaces Poll while turns of jobs are running. Poke ends the wait early.
	busyPoll = 2 * time.Second
)

// setBack is a threshold. If the clock is set back by more than setBack, the scheduler computes the times of the next
// runs again. It ignores smaller corrections. In both cases, no run happens twice.
const setBack = time.Hour

// Scheduler starts the runs of jobs when they are due, and lets users manage jobs. Safe for concurrent use, except Tick.
type Scheduler struct {
	opts Options
	log  *slog.Logger
	poke chan struct{}
	// changes is full while a goroutine changes stored jobs; see lock. Runs need no lock, because only Tick advances them.
	changes chan struct{}

	failed struct{ fire, advance lastError } // only Tick uses them
}

// New returns a Scheduler. It starts no runs before Run is called.
func New(opts Options) *Scheduler {
	opts.Zone, opts.Poll = cmp.Or(opts.Zone, time.Local), cmp.Or(opts.Poll, 15*time.Second)
	return &Scheduler{opts: opts, log: opts.Logger, poke: make(chan struct{}, 1), changes: make(chan struct{}, 1)}
}

// lock prevents concurrent changes of the stored jobs until unlock is called. It returns an error if ctx ends while
// another change waits for the disk. Do not call the Runner or the Notifier in between: they wait for conversations, and
// a conversation may call AddJob or DeleteJob.
func (s *Scheduler) lock(ctx context.Context) error {
	select {
	case s.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change of jobs: %w", context.Cause(ctx))
	}
}

func (s *Scheduler) unlock() { <-s.changes }

// now returns the wall clock without its monotonic reading, because the monotonic clock stops while the machine sleeps.
func (s *Scheduler) now() time.Time { return s.opts.Now().Round(0) }

// Run starts runs until ctx is done. Submitted turns then continue, and the next process of ductor records their ends.
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

// Poke makes Run call Tick at once, because a turn has ended or a job has changed. It does not block.
func (s *Scheduler) Poke() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Tick does everything that is due. It returns the time until the next call, at most Options.Poll. Run calls Tick. Do not
// call Tick from several goroutines.
func (s *Scheduler) Tick(ctx context.Context) time.Duration {
	fireErr := s.fireAll(ctx)
	left, advanceErr := s.advanceRuns(ctx)
	if s.failed.fire.changed(fireErr) && ctx.Err() == nil {
		s.log.Error("start due jobs", "err", fireErr)
	}
	if s.failed.advance.changed(advanceErr) && ctx.Err() == nil {
		s.log.Error("advance runs of jobs", "err", advanceErr)
	}
	return s.untilNext(ctx, left)
}

// lastError is the text of a step's last error, or "" after a success. Tick repeats a failed step every few seconds, so
// it logs an error only if the error is new.
type lastError string

// changed records err, and reports whether it is an error other than the last one.
func (l *lastError) changed(err error) bool {
	last := *l
	if *l = ""; err != nil {
		*l = lastError(err.Error())
	}
	return err != nil && *l != last
}

// untilNext returns the time until the next event of a job or a run, at most Options.Poll.
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

// knownZone returns the time zone of a job. If this machine does not know that zone, it returns the default.
func (s *Scheduler) knownZone(j orchestrator.Job) *time.Location {
	if loc, err := s.zone(j); err == nil {
		return loc
	}
	return s.opts.Zone
}

// plan returns the schedule of a job. It returns nil for a job that a webhook starts.
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
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	all, err := s.opts.Store.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	var errs []error
	for _, st := range all {
		if st.Job.Paused || st.Job.Kind == orchestrator.JobHook || st.Next.IsZero() {
			continue
		}
		// If the job does not exist any more, ignore the error: a user may just have run the prompt of a LaterJob,
		// which deletes the job.
		if err := s.fire(ctx, st); err != nil && !errors.Is(err, orchestrator.ErrNoJob) {
			errs = append(errs, fmt.Errorf("job %s: %w", st.Job.ID, err))
		}
	}
	return errors.Join(errs...)
}
