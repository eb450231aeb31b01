package updates

import (
	"context"
	"slices"

	"ductor/internal/paircode"
	"ductor/orchestrator"
)

// GroupMembers says which users may speak in an allowed group.
type GroupMembers string

// Who may speak in an allowed group. Anything that is not AllMembers means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // those in Users
	AllMembers    GroupMembers = "all"    // everybody who is in it; who is not in Users may send prompts only
)

// GroupTrigger says which messages of an allowed group are prompts.
type GroupTrigger string

// The triggers. Anything that is not TriggerAll means TriggerMention.
const (
	TriggerMention GroupTrigger = "mention" // those that name us or answer to us
	TriggerAll     GroupTrigger = "all"     // all that allowed people write
)

// Receipts says how a prompt is acknowledged at once.
type Receipts string

// The receipts. Anything that is not NoReceipts means ReactionReceipts.
const (
	ReactionReceipts Receipts = "reaction" // 👀 on the message
	NoReceipts       Receipts = "none"
)

// Users knows the roles of users. Safe for concurrent use.
type Users interface {
	// RoleOf gives the role of a user; RoleNone for one that is not listed.
	RoleOf(user orchestrator.PersonID) orchestrator.UserRole
}

// Joins takes invitations.
type Joins interface {
	// Join makes a user known who sends the code of an invitation; false if it opens none.
	Join(ctx context.Context, user orchestrator.PersonID, name, code string) bool
}

// Allow lists the users who get answers. The zero Allow lists none.
type Allow struct {
	Users  Users
	Joins  Joins         // nil: no user joins
	Policy func() Policy // that counts now
}

// Policy says which groups get answers, and to what the bot listens.
type Policy struct {
	Groups     []int64 // chat ids
	Members    GroupMembers
	Trigger    GroupTrigger
	AbortWords []string // bare words that abort in private chats while something runs
	Receipts   Receipts
}

// permits says whether a user may speak in a chat. Channels, bots and anonymous admins may not: what they send names no
// user.
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

// moves says whether a message tells that an allowed group became a supergroup, whoever made it one.
func (a Allow) moves(m *wireMessage) bool {
	return m.MigratedTo != 0 && m.Chat.Type == "group" && slices.Contains(a.Policy().Groups, m.Chat.ID)
}

// joins says whether an update of a user who is not known takes an invitation: of all that strangers send this looks at a
// message "/start CODE" alone, which a user writes in a private chat, and asks the store only for one that can be a code.
func (a Allow) joins(ctx context.Context, w *wireUpdate) bool {
	m := w.Message
	if a.Joins == nil || m == nil || m.From == nil || m.From.IsBot || m.SenderChat != nil || m.Chat.Type != "private" || m.Chat.ID != m.From.ID || originOf(m) != "" {
		return false
	}
	code, ok := paircode.Sent(m.Text)
	user := orchestrator.PersonID(m.From.ID)
	return ok && !a.listed(user) && a.Joins.Join(ctx, user, m.From.name(), code)
}

// roleOf gives the role of a user who may speak.
func (a Allow) roleOf(user orchestrator.PersonID) orchestrator.UserRole {
	if a.Users != nil {
		if role := a.Users.RoleOf(user); role != orchestrator.RoleNone {
			return role
		}
	}
	return orchestrator.RoleMember
}

// listed says whether a user is allowed by id, and not only as a member of a group.
func (a Allow) listed(user orchestrator.PersonID) bool {
	return a.Users != nil && a.Users.RoleOf(user) != orchestrator.RoleNone
}
