package menu

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Service is what menus ask of the domain. *conversation.Engine implements it. Safe for concurrent use.
type Service interface {
	// Status says what a conversation is set to and busy with.
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)

	// SetModel chooses agent, model and effort for a conversation; empty values mean the defaults.
	SetModel(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID, effort cli.Effort) error
	// Menu says for each agent whether it can be used where the conversation's next turn runs, and which models it has.
	// It waits only for the agents in only, if there are some.
	Menu(ctx context.Context, id orchestrator.ConversationID, only ...cli.Agent) ([]cli.MenuEntry, error)
	// MenuNow is Menu without waiting for an agent: the Err of one that is still being asked is cli.ErrLoading.
	MenuNow(ctx context.Context, id orchestrator.ConversationID) ([]cli.MenuEntry, error)

	// Permissions says what the agents of a conversation may do without asking.
	Permissions(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Permissions, error)
	// SetPermission chooses what the agent may do without asking from the next turn on.
	SetPermission(ctx context.Context, id orchestrator.ConversationID, mode cli.PermissionMode, by orchestrator.PersonID) error
	// Bypass lets everything through from the next turn on, for a while or until a restart.
	Bypass(ctx context.Context, id orchestrator.ConversationID, lasts time.Duration, by orchestrator.PersonID) error
	// SetTools limits the tools of the agents from the next turn on. ErrBadChoice for a name that means nothing.
	SetTools(ctx context.Context, id orchestrator.ConversationID, list cli.ToolList, by orchestrator.PersonID) error
	// Revoke takes a rule back. ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id orchestrator.RuleID, by orchestrator.Press) error

	// Roles lists the names of the configured roles, sorted.
	Roles() []string
	// SetRole chooses the role the agent plays from the next turn on, in the same session; an empty name
	// is none. ErrNoRole for one that is not configured.
	SetRole(ctx context.Context, id orchestrator.ConversationID, name string) error

	// Set chooses a setting. ErrBadChoice for a word that is none of it.
	Set(ctx context.Context, in orchestrator.ConversationID, of orchestrator.Setting, word string) error
}
