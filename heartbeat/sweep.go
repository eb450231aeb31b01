package heartbeat

import (
	"context"
	"log/slog"
	"time"

	"ductor/cli"
)

// Runs lists and ends the runs of agents on the host and in containers. internal/app connects it to the
// service.Registry.
type Runs interface {
	List() []cli.RunInfo
	// EndStale ends an overdue run with all its processes. It returns false if the run is not running. It does not wait
	// for the end.
	EndStale(turn cli.TurnID) bool
}

// Sweep ends runs that are too old. It compares wall clocks, so the time of a suspend counts. The turn's card shows
// that its run was ended and offers to run it again. All fields are required.
type Sweep struct {
	Runs   Runs
	Now    func() time.Time
	Logger *slog.Logger
	Every  time.Duration // interval between sweeps
	Age    time.Duration // maximum age of a run
}

// Run sweeps at each interval until ctx is done.
func (s Sweep) Run(ctx context.Context) {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	logged := map[cli.TurnID]bool{} // runs that are being ended
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
		// Call EndStale in every sweep until the run is gone: the run may take a while to end, or need a second call.
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
