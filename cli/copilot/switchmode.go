package copilot

import (
	"context"
	"errors"
	"fmt"

	"ductor/cli"
)

var _ cli.PermissionSetter = (*live)(nil)

// SetPermission has Copilot work in another mode from its next tool on; see cli.PermissionSetter. What a turn lets through
// by Copilot's own judgement is settled as it begins, so no mode that has that can be changed to.
func (s *live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	p, err := permissionOf(mode)
	if err != nil || p.judged {
		return fmt.Errorf("change to the mode %q: %w", mode, errors.ErrUnsupported)
	}
	s.mu.Lock()
	t, id := s.turn, s.id
	s.mu.Unlock()
	if t == nil {
		return cli.ErrNoTurn
	}
	if err := s.allow(ctx, t.server, id, cli.Request{Permission: mode}); err != nil {
		return callFailure(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied.permission = mode
	return nil
}
