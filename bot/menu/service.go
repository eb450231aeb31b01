package menu

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Service is the part of the domain that menus need. *conversation.Engine implements it. Safe for concurrent use.
type Service interface {
	// Status returns a conversation's settings and its current work.
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)

	// SetModel sets agent, model and effort of a conversation. Empty values mean the defaults.
	SetModel(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID,
		effort cli.Effort) error
	// Menu lists each agent with its models, and reports whether the conversation's next turn can use the agent. If
	// only is not empty, Menu waits only for the agents in it.
	Menu(ctx context.Context, id orchestrator.ConversationID, only ...cli.Agent) ([]cli.MenuEntry, error)
	// MenuNow is like Menu, but does not wait. If an agent's models are still loading, Err of the agent is
	// cli.ErrLoading.
	MenuNow(ctx context.Context, id orchestrator.ConversationID) ([]cli.MenuEntry, error)

	// Permissions returns the actions that the agents of a conversation may take without asking.
	Permissions(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Permissions, error)
	// SetPermission sets the permission mode from the next turn on. Bypass lasts for DefaultBypass. SetPermission
	// returns ErrNoPermissionMode for a mode that cli.PermissionModes does not list.
	SetPermission(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode,
		by orchestrator.PersonID) error
	// Bypass allows everything from the next turn on, for the given time or until a restart. Then the conversation
	// returns to ask mode. Bypass returns ErrBadChoice if the time is too long or not positive.
	Bypass(ctx context.Context, id orchestrator.ConversationID, lasts time.Duration, by orchestrator.PersonID) error
	// SetTools limits the tools of the agents from the next turn on. The limits of the configuration still apply.
	// SetTools returns ErrBadChoice for an unknown name.
	SetTools(ctx context.Context, id orchestrator.ConversationID, list cli.ToolList, by orchestrator.PersonID) error
	// Revoke deletes a rule. It returns ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id orchestrator.RuleID, by orchestrator.Press) error

	// Roles lists the names of the configured roles, sorted.
	Roles() []string
	// SetRole sets the agent's role from the next turn on, in the same session. An empty name means no role. SetRole
	// returns ErrNoRole if the role is not configured.
	SetRole(ctx context.Context, id orchestrator.ConversationID, name string) error

	// Set changes a setting. It returns ErrBadChoice if word is not a value of the setting.
	Set(ctx context.Context, in orchestrator.ConversationID, of orchestrator.Setting, word string) error
}
