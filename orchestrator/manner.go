package orchestrator

import (
	"context"
	"maps"
	"slices"
	"time"

	"ductor/cli"
)

// NoRole stands in Conversation.Role for a conversation that is to play none, whatever the configured default.
const NoRole = "(none)"

// SetPermission chooses what the agent may do unasked, from the next turn to start on: waiting ones are
// among them, one that runs is not. Bypass lasts for DefaultBypass. ErrNoPermissionMode for a mode that cli.PermissionModes does not list.
func (o *Orchestrator) SetPermission(ctx context.Context, id ConversationID, mode cli.PermissionMode, by PersonID) error {
	if !slices.Contains(cli.PermissionModes(), mode) {
		return ErrNoPermissionMode
	}
	if mode == cli.Bypass {
		return o.Bypass(ctx, id, DefaultBypass, by)
	}
	err := o.change(ctx, id, func(c *Conversation) { c.Permission, c.BypassUntil = mode, time.Time{} },
		AuditEntry{What: AuditMode, Title: string(mode), By: by})
	if err == nil {
		o.warm(ctx, id)
	}
	return err
}

// SetRole chooses the role the agent plays, from the next turn to start on; an empty name is none. The
// session stays: an agent that takes a system prompt only when it starts is started anew and resumed.
// ErrNoRole for a role that is not configured.
func (o *Orchestrator) SetRole(ctx context.Context, id ConversationID, name string) error {
	if name == "" {
		name = NoRole
	} else if !slices.Contains(o.Roles(), name) {
		return ErrNoRole
	}
	err := o.change(ctx, id, func(c *Conversation) { c.Role = name })
	if err == nil {
		o.warm(ctx, id)
	}
	return err
}

// Roles lists the names of the configured roles, sorted. A role without a name, or called NoRole, cannot be
// chosen and is not among them.
func (o *Orchestrator) Roles() []string {
	names := slices.Sorted(maps.Keys(o.opts.Roles))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == NoRole })
}

// SetBusy chooses what becomes of a prompt that comes while a turn runs. ErrBadChoice for no BusyMode.
func (o *Orchestrator) SetBusy(ctx context.Context, id ConversationID, mode BusyMode) error {
	if !slices.Contains(BusyModes(), mode) {
		return ErrBadChoice
	}
	return o.change(ctx, id, func(c *Conversation) { c.Busy = mode })
}

func (o *Orchestrator) busyOf(c Conversation) BusyMode {
	if !slices.Contains(BusyModes(), c.Busy) {
		return BusyQueue
	}
	return c.Busy
}

func (o *Orchestrator) permissionOf(c Conversation) cli.PermissionMode {
	switch {
	case c.Permission == "":
		return o.opts.Permission
	case c.Permission == cli.Bypass && !o.bypassed(c):
		return cli.Ask
	}
	return c.Permission
}

// roleOf names the role that is played, empty for none. One that was chosen and is no longer configured is
// none: the default was not asked for.
func (o *Orchestrator) roleOf(c Conversation) string {
	if c.Role == "" {
		return o.opts.DefaultRole
	}
	if !slices.Contains(o.Roles(), c.Role) {
		return ""
	}
	return c.Role
}
