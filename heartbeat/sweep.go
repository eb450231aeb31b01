package heartbeat

import (
	"context"
	"log/slog"
	"time"

	"ductor/cli"
)

// Runs lists the agents' runs on this host and in containers, and can end them. internal/app implements it with a
// service.Registry.
type Runs interface {
	List() []cli.RunInfo
	// EndStale ends the run of a turn with all its processes. It does not wait for their end. It returns false if no
	// such run exists.
	EndStale(turn cli.TurnID) bool
}

// Sweep ends runs that are older than Age. The age includes time in which the machine was suspended, because Sweep uses
// the wall clock. The turn's card then shows that the run was ended, and offers to run the turn again. All fields are
// required.
type Sweep struct {
	Runs   Runs
	Now    func() time.Time
	Logger *slog.Logger
	Every  time.Duration // interval between sweeps
	Age    time.Duration // greatest age of a run
}

// Run ends old runs at each interval until ctx is done.
func (s Sweep) Run(ctx context.Context) {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	logged := map[cli.TurnID]bool{} // turns for which a warning was logged
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			logged = s.sweep(logged)
		}
	}
}

func (s Sweep) sweep(logged map[cli.TurnID]bool) (ending map[cli.TurnID]bool) {
	now := s.Now().Round(0)
	ending = map[cli.TurnID]bool{}
	for _, i := range s.Runs.List() {
		// EndStale does not wait for the end of the run. Call EndStale in each sweep until List omits the run.
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
