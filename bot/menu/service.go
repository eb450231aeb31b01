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
	// Menu lists each agent with its models, and whether it can be used where the conversation's next turn runs. If
	// only is not empty, it waits only for those agents.
	Menu(ctx context.Context, id orchestrator.ConversationID, only ...cli.Agent) ([]cli.MenuEntry, error)
	// MenuNow returns Menu without waiting: the Err of an agent whose models are still loading is cli.ErrLoading.
	MenuNow(ctx context.Context, id orchestrator.ConversationID) ([]cli.MenuEntry, error)

	// Accounts lists the accounts of the conversation's agent, and whether they are logged in, as far as that is soon
	// known.
	Accounts(ctx context.Context, id orchestrator.ConversationID) (orchestrator.AccountChoice, error)
	// SetAccount sets the account of an agent from the next turn on. It returns ErrBadChoice if the agent has no such
	// account.
	SetAccount(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, account cli.Account) error

	// Permissions returns what the agents of a conversation may do without asking.
	Permissions(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Permissions, error)
	// SetPermission sets what the agent may do without asking, from the next turn on. Bypass lasts for DefaultBypass.
	// It returns ErrNoPermissionMode for a mode that cli.PermissionModes does not list.
	SetPermission(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode,
		by orchestrator.PersonID) error
	// Bypass allows everything from the next turn on, for the given time or until a restart. After that the
	// conversation is in ask mode. It returns ErrBadChoice if the time is too long or not positive.
	Bypass(ctx context.Context, id orchestrator.ConversationID, lasts time.Duration, by orchestrator.PersonID) error
	// SetTools limits the tools of the agents from the next turn on, in addition to the configuration. It returns
	// ErrBadChoice for an unknown name.
	SetTools(ctx context.Context, id orchestrator.ConversationID, list cli.ToolList, by orchestrator.PersonID) error
	// Revoke deletes a rule. It returns ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id orchestrator.RuleID, by orchestrator.Press) error

	// Roles lists the names of the configured roles, sorted.
	Roles() []string
	// SetRole sets the agent's role from the next turn on, in the same session. An empty name means no role. It returns
	// ErrNoRole if the role is not configured.
	SetRole(ctx context.Context, id orchestrator.ConversationID, name string) error

	// Set changes a setting. It returns ErrBadChoice if the setting has no such word.
	Set(ctx context.Context, in orchestrator.ConversationID, of orchestrator.Setting, word string) error
}
