package cli

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// ChooseMode is how an agent is run that can be run in any of can, the preferred one first: as it is wanted, if it
// can be. Empty if it cannot be run at all.
func ChooseMode(can []Mode, wanted Mode) Mode {
	switch {
	case len(can) == 0:
		return ""
	case slices.Contains(can, wanted):
		return wanted
	}
	return can[0]
}

// newModes asks a provider for its modes when they are needed first, for that may take a process.
func (s *Service) newModes(p Provider) *cached[[]Mode] {
	var warned sync.Once
	return &cached[[]Mode]{
		now: s.opts.Now, spawn: s.work.spawn,
		keep: func(can []Mode) time.Duration { return s.ttl(len(can) > 0) },
		fetch: func() (can []Mode) {
			_ = guard(p.Agent(), func() error { can = p.Modes(); return nil }) // none, then
			want := s.opts.Modes[p.Agent()]
			if runs := ChooseMode(can, want); runs != "" && runs != want && want != "" { // an older version of it, perhaps
				warned.Do(func() {
					s.opts.Logger.Warn("an agent cannot be run in the mode that is configured", "agent", string(p.Agent()), "mode", string(want), "runs", string(runs))
				})
			}
			return can
		},
	}
}

// mode is how an agent is run. The first call may have to ask it.
func (s *Service) mode(ctx context.Context, e *agentEntry) (Mode, error) {
	can, err := e.modes.get(ctx)
	if err != nil {
		return "", err
	}
	agent := e.provider.Agent()
	mode := ChooseMode(can, s.opts.Modes[agent])
	if mode == "" {
		return "", Failf(UnknownFailure, agent, "there is no mode it can be run in")
	}
	return mode, nil
}

// modeSoFar is how an agent is run as far as that is known without asking it: as configured, else live.
func (s *Service) modeSoFar(e *agentEntry) Mode {
	want := s.opts.Modes[e.provider.Agent()]
	can, _ := e.modes.latest()
	if mode := ChooseMode(can, want); mode != "" {
		return mode
	}
	return cmp.Or(want, Live)
}
