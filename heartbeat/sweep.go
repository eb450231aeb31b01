package heartbeat

import (
	"context"
	"log/slog"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// RunKind is what started a run of an agent.
type RunKind string

// The kinds of run.
const (
	RunOfChat RunKind = "chat"
	RunOfJob  RunKind = "job"
)

// KindOf tells the kinds apart by the turn.
func KindOf(i cli.RunInfo) RunKind {
	if orchestrator.IsJobTurn(i.Turn) {
		return RunOfJob
	}
	return RunOfChat
}

// Runs knows the runs of agents, on the host and in containers. cmd ties it to the service.Registry.
type Runs interface {
	List() []cli.RunInfo
	// EndStale ends a run because it takes far too long, with all it started; false if it does not run. It does
	// not wait.
	EndStale(turn cli.TurnID) bool
}

// SweepOptions configure a Sweep. All but Every and Ages are required.
type SweepOptions struct {
	Runs   Runs
	Now    func() time.Time
	Logger *slog.Logger
	// Notice says once of each run that it was ended, and offers to run it again.
	Notice func(ctx context.Context, i cli.RunInfo)
	Every  time.Duration             // DefaultSweep when 0
	Ages   map[RunKind]time.Duration // how old each kind may get; a kind that is not there is not swept
}

// DefaultSweep is the time between two sweeps.
const DefaultSweep = time.Minute

// Sweep ends runs that are far too old by the wall clock, time of suspend included.
type Sweep struct {
	opts     SweepOptions
	notified map[cli.TurnID]bool // Notice was called, and the turn still runs
}

// NewSweep makes a Sweep. Nothing happens before Run.
func NewSweep(opts SweepOptions) *Sweep {
	if opts.Every <= 0 {
		opts.Every = DefaultSweep
	}
	return &Sweep{opts: opts, notified: map[cli.TurnID]bool{}}
}

// Run sweeps until ctx is done. Call it once.
func (s *Sweep) Run(ctx context.Context) {
	tick := time.NewTicker(s.opts.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.once(ctx)
		}
	}
}

func (s *Sweep) once(ctx context.Context) {
	now := s.opts.Now().Round(0)
	there := map[cli.TurnID]bool{}
	for _, i := range s.opts.Runs.List() {
		age, swept := s.opts.Ages[KindOf(i)]
		if !swept || now.Sub(i.Started.Round(0)) <= age {
			continue
		}
		// One that was ended may need a moment to end, or a second call.
		if !s.opts.Runs.EndStale(i.Turn) {
			continue
		}
		there[i.Turn] = true
		if s.notified[i.Turn] {
			continue
		}
		s.opts.Logger.Warn("ended a run that was far too old", "conversation", i.Conversation, "agent", i.Agent,
			"turn", i.Turn, "started", i.Started)
		s.opts.Notice(ctx, i)
	}
	s.notified = there
}
