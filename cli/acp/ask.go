package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/cli/rpc"
)

// ask is a request for permission that waits for an answer.
type ask struct {
	id     json.RawMessage // of the request
	params askParams
	raw    json.RawMessage // params, whole
	tool   *tool           // set by the turn
	shown  bool            // turn.put passed it on
}

// key is the ask's name in a turn. It is the same after a restart.
func (a *ask) key() cli.ApprovalID { return cli.ApprovalID("ask-" + rpc.Text(a.id)) }

// option finds the option of a kind.
func (a *ask) option(kind string) (string, bool) {
	i := slices.IndexFunc(a.params.Options, func(o askOption) bool { return o.Kind == kind })
	if i < 0 {
		return "", false
	}
	return a.params.Options[i].ID, true
}

// answer is the reply to the agent. What an agent would remember for good is never picked: it cannot be allowed
// where it offers nothing less, and denying becomes giving up.
func (a *ask) answer(allow bool) (askResult, error) {
	if !allow {
		if id, ok := a.option(optionReject); ok {
			return selected(id), nil
		}
		return cancelled(), nil
	}
	id, ok := a.option(optionAllow)
	if !ok {
		return askResult{}, fmt.Errorf("the agent offers no way to allow this once")
	}
	return selected(id), nil
}

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
		return cli.Failf(cli.Refused, s.process.provider.opts.Agent, "%v", err)
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
		return fmt.Errorf("answer %s: %w", s.process.provider.opts.Agent, err)
	}
	select {
	case err := <-written:
		if err != nil {
			return fmt.Errorf("answer %s: %w", s.process.provider.opts.Agent, err)
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
