package claude

import (
	"context"
	"fmt"

	"ductor/cli"
)

var _ cli.PermissionSetter = (*live)(nil)

// switchID is the id of a request to change the permission mode in the middle of a turn.
const switchID = "switch-permission-mode"

// SetPermission has Claude work in another mode from its next tool on; see cli.PermissionSetter.
func (s *live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	t := s.running()
	if t == nil {
		return cli.ErrNoTurn
	}
	flag, err := permissionFlag(formatLive, cli.Request{Permission: mode, Attended: t.req.Attended})
	if err != nil {
		return err
	}
	select {
	case <-t.asked: // before, a change that belongs to the turn's beginning may be under way
	case <-t.gone:
		return cli.ErrNoTurn
	case <-ctx.Done():
		return fmt.Errorf("set the permission mode: %w", context.Cause(ctx))
	}
	agreed := t.expectSwitch()
	if err := t.run.stream.Send(controlLine(switchID, map[string]any{"subtype": "set_permission_mode", "mode": flag})); err != nil {
		return fmt.Errorf("set the permission mode: %w", err)
	}
	select {
	case err := <-agreed:
		if err == nil {
			t.switched(flag)
		}
		return err
	case <-t.gone:
		return cli.ErrNoTurn
	case <-ctx.Done():
		return fmt.Errorf("set the permission mode: %w", context.Cause(ctx))
	}
}

// expectSwitch gives a channel with Claude's answer to a change of the mode.
func (t *liveTurn) expectSwitch() <-chan error {
	agreed := make(chan error, 1)
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.switching = agreed
	return agreed
}

// switchReplied takes Claude's answer to a change of the mode.
func (t *liveTurn) switchReplied(r *controlReply) {
	t.session.mu.Lock()
	agreed := t.switching
	t.switching = nil
	t.session.mu.Unlock()
	switch {
	case agreed == nil:
	case r.Subtype == "error":
		agreed <- cli.Failf(cli.Refused, agent, "it does not take the permission mode: %s", oneLine(r.Error))
	default:
		agreed <- nil
	}
}

// switched records how the process works now.
func (t *liveTurn) switched(flag string) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.open.want.Permission, t.session.turnSettings.Permission = flag, flag
}
