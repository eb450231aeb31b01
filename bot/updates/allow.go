package updates

import (
	"context"
	"slices"
	"strings"

	"ductor/internal/paircode"
	"ductor/orchestrator"
)

// GroupMembers selects the users who may write to the bot in an allowed group.
type GroupMembers string

// Values of GroupMembers. Any value except AllMembers means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // users in Users
	AllMembers    GroupMembers = "all"    // all members; members who are not in Users may only send prompts
)

// GroupTrigger determines which messages of an allowed group are prompts.
type GroupTrigger string

// Values of GroupTrigger. Any value except TriggerAll means TriggerMention.
const (
	TriggerMention GroupTrigger = "mention" // messages that mention the bot or reply to one of its messages
	TriggerAll     GroupTrigger = "all"     // every message of an allowed user
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

// Allow determines which users may use the bot. The zero Allow permits no user.
type Allow struct {
	Users  Users
	Joins  Joins         // nil: users cannot join
	Policy func() Policy // returns the current policy
}

// Policy configures which groups may use the bot, and which of their messages are for the bot.
type Policy struct {
	AllowedGroups []int64      `toml:"allowed_groups"` // chat IDs
	GroupMembers  GroupMembers `toml:"group_members" default:"listed" check:"listed|all"`
	GroupTrigger  GroupTrigger `toml:"group_trigger" default:"mention" check:"mention|all"`
	AbortWords    []string     `toml:"abort_words" default:"['stop', 'abort']"` // words that abort in private chats
	Reactions     bool         `toml:"reactions" default:"true"`                // acknowledge prompts with 👀
}

// Check implements config.checker.
func (p Policy) Check(problem func(key, format string, args ...any)) {
	for _, id := range p.AllowedGroups {
		if id >= 0 {
			problem("allowed_groups", "%d is not a group's id; those are negative, such as -1001234567890", id)
		}
	}
	for _, w := range p.AbortWords {
		isWord := w != "" && !strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' })
		if !isWord || w != strings.ToLower(w) || w[0] == '/' {
			problem("abort_words", "%q should be one word in small letters, without a slash", w)
		}
	}
}

// permits reports whether a user may use the bot in a chat. Channels, bots and anonymous admins may not, because
// their messages contain no user.
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
		return slices.Contains(policy.AllowedGroups, chat.ID) && (listed || policy.GroupMembers == AllMembers)
	default:
		return false
	}
}

// moves reports whether a message announces that an allowed group became a supergroup. Any member may cause this
// message.
func (a Allow) moves(m *wireMessage) bool {
	return m.MigratedTo != 0 && m.Chat.Type == "group" && slices.Contains(a.Policy().AllowedGroups, m.Chat.ID)
}

// joins reports whether an update of an unknown user accepts an invitation. It considers only a message "/start CODE"
// from a user in a private chat, and asks the store only if the code is well-formed.
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

// roleOf returns the role of a user whom permits accepts.
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
