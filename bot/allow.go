package bot

import (
	"log/slog"
	"slices"
	"time"

	"ductor/orchestrator"
)

// GroupMembers says who may speak in an allowed group.
type GroupMembers string

// Who may speak in an allowed group. Anything that is not AllMembers means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // those in Users
	AllMembers    GroupMembers = "all"    // everybody who is in it
)

// Allow says who is answered. The zero Allow answers nobody.
type Allow struct {
	Users   []orchestrator.PersonID
	Groups  []int64 // chat ids
	Members GroupMembers
}

// permits says whether a person may speak in a chat. Channels, bots and anonymous admins never may: what
// they send names nobody.
func (a Allow) permits(chat wireChat, from *wireUser, as *wireChat) bool {
	if from == nil || from.IsBot || as != nil {
		return false
	}
	listed := a.listed(orchestrator.PersonID(from.ID))
	switch chat.Type {
	case "private":
		return listed && chat.ID == from.ID
	case "group", "supergroup":
		return slices.Contains(a.Groups, chat.ID) && (listed || a.Members == AllMembers)
	default:
		return false
	}
}

// listed says whether a person is allowed by name, and not only as a member of a group.
func (a Allow) listed(person orchestrator.PersonID) bool { return slices.Contains(a.Users, person) }

// strangers logs who was turned away: one line each hour per person and chat, so that the owner can
// allow them, and nobody can fill the log. Not safe for concurrent use.
type strangers struct {
	log  *slog.Logger
	now  func() time.Time
	seen map[stranger]time.Time
}

type stranger struct{ chat, person int64 }

const (
	strangerQuiet = time.Hour
	strangersKept = 1024
)

func (s *strangers) note(chat wireChat, from *wireUser, as *wireChat) {
	who := stranger{chat: chat.ID}
	name := ""
	switch {
	case as != nil:
		who.person, name = as.ID, as.Title
	case from != nil:
		who.person, name = from.ID, from.name()
	}
	now := s.now()
	if last, ok := s.seen[who]; ok && now.Sub(last) < strangerQuiet {
		return
	}
	if len(s.seen) >= strangersKept {
		clear(s.seen)
	}
	s.seen[who] = now
	username := ""
	if from != nil {
		username = from.Username
	}
	s.log.Warn("turned a stranger away; to allow them, add the id to allowed_users, or the group's id to allowed_groups",
		"user_id", who.person, "name", name, "username", username,
		"chat_id", chat.ID, "chat_type", chat.Type, "chat_title", chat.Title)
}
