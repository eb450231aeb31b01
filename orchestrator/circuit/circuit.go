// Package circuit is a circuit breaker for agents: it pauses an agent after several failed turns in a row, and while
// the agent is at its usage limit.
package circuit

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// firstPause is how long ductor does not use an agent after too many failures. Each further failure doubles the pause,
// up to mostPause.
const (
	firstPause = time.Minute
	mostPause  = 30 * time.Minute
)

// Breakers records how the last turns of each agent in each environment ended. If the pointer is nil, agents never
// pause. It is safe for concurrent use.
type Breakers struct {
	failures int // an agent pauses after this number of failures in a row
	now      func() time.Time

	mu     sync.Mutex
	states map[agent]state
}

type agent struct {
	in      string // sandbox in which the agent runs; empty means this host
	name    cli.Agent
	account cli.Account
}

// state describes an agent. Its usage limit and its failures are independent of each other.
type state struct {
	limit *cli.Failure // the usage limit that the agent has reached; nil for none

	failed int // number of failed turns in a row
	last   *cli.Failure
	paused time.Time // when the pause ends
}

// New creates Breakers. An agent pauses after the given number of failures in a row. If failures is 0, an agent pauses
// only at its usage limit.
func New(failures int, now func() time.Time) *Breakers {
	return &Breakers{failures: failures, now: now, states: map[agent]state{}}
}

// Ended records how a turn ended. The failure is nil if the turn succeeded. Ended ignores the failure of a turn that
// ductor ended because it ran far too long (cli.ErrStale), because that is not the agent's fault.
func (b *Breakers) Ended(in cli.Sandbox, name cli.Agent, account cli.Account, f *cli.Failure) {
	if b == nil || f != nil && errors.Is(f, cli.ErrStale) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	who := agent{in.Name(), name, account}
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
	case cli.Refused, cli.AnswerCut, cli.ModelRefused, cli.DeniedTools, cli.LimitOfTurn, cli.ContextFull,
		cli.UnknownModel:
		return works
	}
	return saysNothing
}

// Open returns nil if ductor may use an agent now. If the agent pauses, Open returns the failure that caused the pause.
func (b *Breakers) Open(in cli.Sandbox, name cli.Agent, account cli.Account) *cli.Failure {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open(agent{in.Name(), name, account}, in)
}

func (b *Breakers) open(who agent, in cli.Sandbox) *cli.Failure {
	s := b.states[who]
	switch now := b.now(); {
	case s.limit != nil && s.limit.ResetAt.After(now):
		return s.limit
	case s.paused.After(now):
		return &cli.Failure{Kind: cli.FailsOften, Agent: who.name, Sandbox: in, Code: s.failed, ResetAt: s.paused,
			Cause: s.last}
	}
	return nil
}

// MayRepeat reports whether ductor may run a failed turn of an agent again without asking the user. After too many
// failures, MayRepeat returns false until a turn of the agent succeeds.
func (b *Breakers) MayRepeat(in cli.Sandbox, name cli.Agent, account cli.Account) bool {
	if b == nil || b.failures == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states[agent{in.Name(), name, account}].failed < b.failures
}

// All returns one failure for each agent that pauses in an environment: the failure that caused the pause. The list is
// sorted by agent. For each agent, All considers only the given account.
func (b *Breakers) All(in cli.Sandbox, of cli.Accounts) (all []*cli.Failure) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for who := range b.states {
		if who.in != in.Name() || who.account != of[who.name] {
			continue
		}
		if f := b.open(who, in); f != nil {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(x, y *cli.Failure) int { return cmp.Compare(x.Agent, y.Agent) })
	return all
}
