package menu

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Service contains the operations of the orchestrator that menus need. *conversation.Engine implements it. It must be
// safe for concurrent use.
type Service interface {
	// Status returns the settings of a conversation, and the turns that are running in it.
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)

	// SetModel sets the agent, the model and the model's effort. Empty values mean the defaults.
	SetModel(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID,
		effort cli.Effort) error
	// Menu returns all agents with their models, and whether the conversation can use them. It waits until the given
	// agents have listed their models. If no agents are given, it waits for all agents.
	Menu(ctx context.Context, id orchestrator.ConversationID, only ...cli.Agent) ([]cli.MenuEntry, error)
	// MenuNow is like Menu, but does not wait. If an agent is still listing its models, the field Err of its entry is
	// cli.ErrLoading.
	MenuNow(ctx context.Context, id orchestrator.ConversationID) ([]cli.MenuEntry, error)

	// Accounts returns the accounts of the conversation's agent. It waits only a short time for the login state of each
	// account. If an agent does not report the state in this time, the state is unknown.
	Accounts(ctx context.Context, id orchestrator.ConversationID) (orchestrator.AccountChoice, error)
	// SetAccount sets the account that an agent uses from the next turn on. It returns ErrBadChoice if the agent has no
	// such account.
	SetAccount(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, account cli.Account) error

	// Permissions returns the actions that agents may take in a conversation without asking.
	Permissions(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Permissions, error)
	// SetPermission sets the permission mode from the next turn on. Bypass mode ends after DefaultBypass. SetPermission
	// returns ErrNoPermissionMode if the mode is not one of cli.PermissionModes.
	SetPermission(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode,
		by orchestrator.PersonID) error
	// Bypass sets bypass mode from the next turn on: agents need no approvals. The mode returns to "ask" after the
	// given time, or when ductor restarts. Bypass returns ErrBadChoice if the time is too long or not positive.
	Bypass(ctx context.Context, id orchestrator.ConversationID, lasts time.Duration, by orchestrator.PersonID) error
	// SetTools limits which tools agents may use from the next turn on. Limits in the configuration still apply.
	// SetTools returns ErrBadChoice if list contains an unknown name.
	SetTools(ctx context.Context, id orchestrator.ConversationID, list cli.ToolList, by orchestrator.PersonID) error
	// Revoke deletes a permission rule. It returns ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id orchestrator.RuleID, by orchestrator.Press) error

	// Roles returns the names of the configured roles, sorted.
	Roles() []string
	// SetRole sets the agent's role from the next turn on. The session continues. An empty name means no role. SetRole
	// returns ErrNoRole if the role is not configured.
	SetRole(ctx context.Context, id orchestrator.ConversationID, name string) error

	// Set changes a setting. It returns ErrBadChoice if word is not a value of the setting.
	Set(ctx context.Context, in orchestrator.ConversationID, of orchestrator.Setting, word string) error
}
