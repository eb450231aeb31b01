package acp

import (
	"context"
	"fmt"

	"ductor/cli"
)

// decided is a decision on its way to the turn.
type decided struct {
	ask   *ask
	allow bool
}

// Decide answers a request for permission; see cli.Decider. The agent hears no reason: the protocol has no room
// for one, which event says.
func (s *session) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	s.mu.Lock()
	a := s.turn.asks[id]
	if a == nil || s.phase != phaseRunning {
		s.mu.Unlock()
		return cli.ErrNotAsked
	}
	result, err := a.answer(d.Allow)
	if err != nil {
		s.mu.Unlock()
		return cli.Failf(cli.Refused, s.process.opts.Agent, "%v", err)
	}
	delete(s.turn.asks, id)
	s.mu.Unlock()
	written := make(chan error, 1)
	put(s.inbox, item{decided: &decided{ask: a, allow: d.Allow}}) // before what the agent makes of it
	err = s.process.Peer().Reply(a.id, result, func(err error) {
		if err == nil {
			s.noteAnswered(a)
		}
		written <- err
	})
	if err != nil {
		return fmt.Errorf("answer %s: %w", s.process.opts.Agent, err)
	}
	select {
	case err := <-written:
		if err != nil {
			return fmt.Errorf("answer %s: %w", s.process.opts.Agent, err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withdraw takes asks away that no user may answer any more, and says which they were.
func (s *session) withdraw(which func(*ask) bool) []*ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []*ask
	for key, a := range s.turn.asks {
		if which(a) {
			gone = append(gone, a)
			delete(s.turn.asks, key)
		}
	}
	return gone
}

// await enters an ask that a user is to decide.
func (s *session) await(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.asks[a.key()] = a
}
