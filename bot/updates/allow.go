package updates

import (
	"context"
	"slices"

	"ductor/internal/paircode"
	"ductor/orchestrator"
)

// GroupMembers selects the users who may write to the bot in an allowed group.
type GroupMembers string

// Users who may speak in an allowed group. Any value but AllMembers means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // only those in Users
	AllMembers    GroupMembers = "all"    // every member; a member who is not in Users may only send prompts
)

// GroupTrigger determines which messages of an allowed group are prompts.
type GroupTrigger string

// Triggers. Any value but TriggerAll means TriggerMention.
const (
	TriggerMention GroupTrigger = "mention" // messages that mention the bot or reply to it
	TriggerAll     GroupTrigger = "all"     // every message of an allowed user
)

// Receipts is the way a prompt is acknowledged at once.
type Receipts string

// Receipts. Any value but NoReceipts means ReactionReceipts.
const (
	ReactionReceipts Receipts = "reaction" // 👀 on the message
	NoReceipts       Receipts = "none"
)

// Users returns the roles of users. Safe for concurrent use.
type Users interface {
	// RoleOf returns the role of a user, or RoleNone for a user who is not listed.
	RoleOf(user orchestrator.PersonID) orchestrator.UserRole
}

// Joins handles invitations.
type Joins interface {
	// Join registers a user who sends the code of an invitation. It returns false if the code is invalid.
	Join(ctx context.Context, user orchestrator.PersonID, name, code string) bool
}

// Allow determines which users get answers. With the zero Allow none do.
type Allow struct {
	Users  Users
	Joins  Joins         // nil: no user can join
	Policy func() Policy // returns the current policy
}

// Policy configures which groups get answers, and which of their messages are for the bot.
type Policy struct {
	Groups     []int64 // chat ids
	Members    GroupMembers
	Trigger    GroupTrigger
	AbortWords []string // bare words that abort in private chats while a turn runs
	Receipts   Receipts
}

// permits reports whether a user may speak in a chat. Channels, bots and anonymous admins may not, because their
// messages name no user.
func (a Allow) permits(chat wireChat, from *wireUser, as *wireChat) bool {
	if from == nil || from.IsBot || as != nil {
		return false
	}
	listed := a.listed(orchestrator.PersonID(from.ID))
	switch chat.Type {
	case "private":
		return listed && chat.ID == from.ID
	case "group", "supergroup":
		policy := a.Policy()
		return slices.Contains(policy.Groups, chat.ID) && (listed || policy.Members == AllMembers)
	default:
		return false
	}
}

// moves reports whether a message announces that an allowed group became a supergroup. Anyone may have caused that.
func (a Allow) moves(m *wireMessage) bool {
	return m.MigratedTo != 0 && m.Chat.Type == "group" && slices.Contains(a.Policy().Groups, m.Chat.ID)
}

// joins reports whether an update of an unknown user accepts an invitation. Of everything that strangers send, it
// considers only a message "/start CODE" that a user writes in a private chat, and it asks the store only if the code
// is well-formed.
func (a Allow) joins(ctx context.Context, w *wireUpdate) bool {
	m := w.Message
	if a.Joins == nil || m == nil || m.From == nil || m.From.IsBot || m.SenderChat != nil || m.Chat.Type != "private" ||
		m.Chat.ID != m.From.ID || originOf(m) != "" {
		return false
	}
	code, ok := paircode.Sent(m.Text)
	user := orchestrator.PersonID(m.From.ID)
	return ok && !a.listed(user) && a.Joins.Join(ctx, user, m.From.name(), code)
}

// roleOf returns the role of a user who may speak.
func (a Allow) roleOf(user orchestrator.PersonID) orchestrator.UserRole {
	if a.Users != nil {
		if role := a.Users.RoleOf(user); role != orchestrator.RoleNone {
			return role
		}
	}
	return orchestrator.RoleMember
}

// listed reports whether a user is allowed individually, not only as a member of a group.
func (a Allow) listed(user orchestrator.PersonID) bool {
	return a.Users != nil && a.Users.RoleOf(user) != orchestrator.RoleNone
}
