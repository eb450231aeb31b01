package heartbeat

import (
	"context"
	"log/slog"
	"time"

	"ductor/cli"
)

// Runs knows the runs of agents, on the host and in containers. internal/app ties it to the service.Registry.
type Runs interface {
	List() []cli.RunInfo
	// EndStale ends a run because it takes far too long, with all it started; false if it does not run. It does
	// not wait.
	EndStale(turn cli.TurnID) bool
}

// Sweep ends runs that are far too old by the wall clock, time of suspend included: the card of a turn says that, and offers
// to run it again. All fields are required.
type Sweep struct {
	Runs   Runs
	Now    func() time.Time
	Logger *slog.Logger
	Every  time.Duration // between two sweeps
	Age    time.Duration // how old a run may get
}

// Run sweeps until ctx is done.
func (s Sweep) Run(ctx context.Context) {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	logged := map[cli.TurnID]bool{} // of the runs that still end
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			logged = s.once(logged)
		}
	}
}

func (s Sweep) once(logged map[cli.TurnID]bool) (ending map[cli.TurnID]bool) {
	now := s.Now().Round(0)
	ending = map[cli.TurnID]bool{}
	for _, i := range s.Runs.List() {
		// One that was ended may need a moment to end, or a second call.
		if now.Sub(i.Started.Round(0)) <= s.Age || !s.Runs.EndStale(i.Turn) {
			continue
		}
		ending[i.Turn] = true
		if !logged[i.Turn] {
			s.Logger.Warn("ended a run that was far too old", "conversation", i.Conversation, "agent", i.Agent,
				"turn", i.Turn, "started", i.Started)
		}
	}
	return ending
}
