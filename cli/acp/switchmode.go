package acp

import (
	"context"
	"errors"
	"fmt"

	"ductor/cli"
)

var _ cli.PermissionSetter = (*session)(nil)

// SetPermission has the agent work in another mode from its next tool on, and decides what it asks for by that; see
// cli.PermissionSetter. An agent whose modes are not known, or that has none for this, may do without asking what it could.
func (s *session) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	s.mu.Lock()
	offered := make([]string, 0, len(s.modes))
	for _, m := range s.modes {
		offered = append(offered, m.ID)
	}
	running, known := s.listening, !s.foreign && oneOf(agentModes(mode), offered) != ""
	s.mu.Unlock()
	switch {
	case !running:
		return cli.ErrNoTurn
	case !known:
		return fmt.Errorf("change to the mode %q: %w", mode, errors.ErrUnsupported)
	}
	if err := s.setMode(ctx, mode); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switched = mode
	return nil
}

// asSwitched is the request of the turn that runs, in the mode that counts now.
func (s *session) asSwitched(req cli.Request) cli.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.switched != "" {
		req.Permission = s.switched
	}
	return req
}
