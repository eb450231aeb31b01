package updates

import (
	"context"
	"slices"
	"strings"
	"time"

	"ductor/internal/paircode"
	"ductor/orchestrator"
)

// GroupMembers decides which members of an allowed group may use the bot.
type GroupMembers string

// Values of GroupMembers. Any other value means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // only users with a known role; see Users.RoleOf
	AllMembers    GroupMembers = "all"    // all members, but unknown users may only send prompts
)

// GroupTrigger decides which messages in an allowed group are prompts for the bot.
type GroupTrigger string

// Values of GroupTrigger. Any other value means TriggerMention.
const (
	TriggerMention GroupTrigger = "mention" // messages that mention the bot or reply to it
	TriggerAll     GroupTrigger = "all"     // all messages of users who may use the bot
)

// Users knows the roles of users. It must be safe for concurrent use.
type Users interface {
	// RoleOf returns the role of a user, or RoleNone if the user is unknown.
	RoleOf(user orchestrator.PersonID) orchestrator.UserRole
}

// Joins lets new users accept an invitation.
type Joins interface {
	// Join registers a new user who sent the code of an invitation. It returns false if the code is invalid.
	Join(ctx context.Context, user orchestrator.PersonID, name, code string) bool
}

// Allow decides which users may use the bot. The zero value allows no user.
type Allow struct {
	Users  Users
	Joins  Joins         // nil: invitations are not supported
	Policy func() Policy // returns the current settings
}

// Policy contains the settings that decide who may use the bot in groups, and which messages are prompts.
type Policy struct {
	AllowedGroups []int64      `toml:"allowed_groups"` // chat IDs
	GroupMembers  GroupMembers `toml:"group_members" default:"listed" check:"listed|all"`
	GroupTrigger  GroupTrigger `toml:"group_trigger" default:"mention" check:"mention|all"`
	Reactions     bool         `toml:"reactions" default:"true"` // react to prompts with 👀

	// AbortWords do the same as /abort in private chats. The defaults are words of all languages.
	AbortWords []string `toml:"abort_words" default:"['stop', 'abort', 'stopp', 'halt', 'abbrechen', '停', '停止']"`
}

// Check implements the checker interface of package config.
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

// permits reports whether a user may use the bot in a chat. senderChat is the channel or group in whose name the
// message was sent, or nil. If it is not nil, permits returns false, because Telegram does not reveal the user who
// wrote such a message.
func (a Allow) permits(chat wireChat, from *wireUser, senderChat *wireChat) bool {
	if from == nil || from.IsBot || senderChat != nil {
		return false
	}
	switch chat.Type {
	case "private":
		return chat.ID == from.ID && a.permitsIn(chat.ID, orchestrator.PersonID(from.ID))
	case "group", "supergroup":
		return chat.ID < 0 && a.permitsIn(chat.ID, orchestrator.PersonID(from.ID))
	default:
		return false
	}
}

// permitsIn reports whether a user may use the bot in a group or in the user's private chat.
func (a Allow) permitsIn(chat int64, user orchestrator.PersonID) bool {
	listed := a.listed(user)
	if chat > 0 {
		return listed
	}
	policy := a.Policy()
	return slices.Contains(policy.AllowedGroups, chat) && (listed || policy.GroupMembers == AllMembers)
}

// moves reports whether a message announces that an allowed group has become a supergroup. Such a message is accepted
// from any member.
func (a Allow) moves(m *wireMessage) bool {
	return m.MigratedTo != 0 && m.Chat.Type == "group" && slices.Contains(a.Policy().AllowedGroups, m.Chat.ID)
}

// joinPatience limits how long the poller waits for the store to check an invitation.
const joinPatience = 5 * time.Second

// joins registers an unknown user who accepts an invitation, and returns true if it has registered the user. The update
// must be a message "/start CODE" in a private chat. joins asks the store only if the code has a valid form.
func (a Allow) joins(w *wireUpdate) bool {
	m := w.Message
	if a.Joins == nil || m == nil || m.From == nil || m.From.IsBot || m.SenderChat != nil || m.Chat.Type != "private" ||
		m.Chat.ID != m.From.ID || originOf(m) != "" {
		return false
	}
	code, ok := paircode.Sent(m.Text)
	user := orchestrator.PersonID(m.From.ID)
	if !ok || a.listed(user) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinPatience)
	defer cancel()
	return a.Joins.Join(ctx, user, m.From.name(), code)
}

// roleOf returns the role of a user. The caller must have called permits for the user.
func (a Allow) roleOf(user orchestrator.PersonID) orchestrator.UserRole {
	if a.Users != nil {
		if role := a.Users.RoleOf(user); role != orchestrator.RoleNone {
			return role
		}
	}
	return orchestrator.RoleMember
}

// listed reports whether the user is known individually, not only as a member of an allowed group.
func (a Allow) listed(user orchestrator.PersonID) bool {
	return a.Users != nil && a.Users.RoleOf(user) != orchestrator.RoleNone
}
