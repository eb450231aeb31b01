// Package circuit is the circuit breaker of agents: one that failed several turns in a row, or has reached its usage limit, is
// left alone for a while
package circuit

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// How long an agent is left alone that failed too often: at first, and at most. It doubles with each further failure.
const (
	firstPause = time.Minute
	mostPause  = 30 * time.Minute
)

// Breakers know of each agent of each place how its last turns ended. Safe for concurrent use. A nil one never opens.
type Breakers struct {
	failures int // in a row, that open a breaker
	now      func() time.Time

	mu     sync.Mutex
	states map[agent]state
}

type agent struct {
	in   string // the name of the sandbox
	name cli.Agent
}

// state has two facts of an agent that do not depend on each other.
type state struct {
	limit *cli.Failure // the usage limit that it reached last; nil for none

	failed int          // turns in a row
	last   *cli.Failure // of them
	paused time.Time    // when it is asked again
}

// New makes breakers that open after so many failures in a row; 0 opens none but those of agents that reached a limit.
func New(failures int, now func() time.Time) *Breakers {
	return &Breakers{failures: failures, now: now, states: map[agent]state{}}
}

// Ended records how a turn of an agent ended; nil for well. The end of a stale turn says nothing of the agent.
func (b *Breakers) Ended(in cli.Sandbox, name cli.Agent, f *cli.Failure) {
	if b == nil || f != nil && errors.Is(f, cli.ErrStale) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	who := agent{in.Name(), name}
	s := b.states[who]
	switch judge(f) {
	case saysNothing:
		return
	case works:
		delete(b.states, who)
		return
	case limited:
		s = state{limit: f}
	case broke:
		s.failed, s.last = s.failed+1, f
		if b.failures > 0 && s.failed >= b.failures {
			s.paused = b.now().Add(pauseAfter(s.failed - b.failures))
		}
	}
	b.states[who] = s
}

func pauseAfter(further int) time.Duration {
	pause := firstPause
	for range further {
		if pause *= 2; pause >= mostPause {
			return mostPause
		}
	}
	return pause
}

// verdict is what the end of a turn says of its agent.
type verdict int

const (
	works verdict = iota
	broke
	limited
	saysNothing
)

func judge(f *cli.Failure) verdict {
	if f == nil {
		return works
	}
	switch f.Kind {
	case cli.Crashed, cli.TimedOut, cli.BadOutput, cli.Overloaded, cli.APIFailed, cli.NetworkDown:
		return broke
	case cli.LimitReached:
		if f.ResetAt.IsZero() {
			return saysNothing
		}
		return limited
	case cli.Refused, cli.AnswerCut, cli.ModelRefused, cli.DeniedTools, cli.LimitOfTurn, cli.ContextFull, cli.UnknownModel:
		return works
	}
	return saysNothing
}

// Open says why an agent is left alone now; nil if it is not.
func (b *Breakers) Open(in cli.Sandbox, name cli.Agent) *cli.Failure {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open(agent{in.Name(), name}, in)
}

func (b *Breakers) open(who agent, in cli.Sandbox) *cli.Failure {
	s := b.states[who]
	switch now := b.now(); {
	case s.limit != nil && s.limit.ResetAt.After(now):
		return s.limit
	case s.paused.After(now):
		return &cli.Failure{Kind: cli.FailsOften, Agent: who.name, Sandbox: in, Code: s.failed, ResetAt: s.paused, Cause: s.last}
	}
	return nil
}

// MayRepeat says whether a turn that an agent failed may be tried again without being asked for: not if it failed too
// often, until it runs one well.
func (b *Breakers) MayRepeat(in cli.Sandbox, name cli.Agent) bool {
	if b == nil || b.failures == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states[agent{in.Name(), name}].failed < b.failures
}

// All says for each agent of a place that is left alone why, in the order of their names.
func (b *Breakers) All(in cli.Sandbox) (all []*cli.Failure) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for who := range b.states {
		if who.in != in.Name() {
			continue
		}
		if f := b.open(who, in); f != nil {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(x, y *cli.Failure) int { return cmp.Compare(x.Agent, y.Agent) })
	return all
}
