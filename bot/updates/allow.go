package updates

import (
	"slices"

	"ductor/orchestrator"
)

// GroupMembers says which users may speak in an allowed group.
type GroupMembers string

// Who may speak in an allowed group. Anything that is not AllMembers means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // those in Users
	AllMembers    GroupMembers = "all"    // everybody who is in it; who is not in Users may send prompts only
)

// Allow lists the users who get answers. The zero Allow lists none.
type Allow struct {
	Users   []orchestrator.PersonID
	Groups  []int64 // chat ids
	Members GroupMembers
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
		return slices.Contains(a.Groups, chat.ID) && (listed || a.Members == AllMembers)
	default:
		return false
	}
}

// rightsOf says whether a user who may speak may do all there is, or send prompts only.
func (a Allow) rightsOf(user orchestrator.PersonID) orchestrator.RightsOf {
	if a.listed(user) {
		return orchestrator.RightsOfChat
	}
	return orchestrator.RightsOfMember
}

// listed says whether a user is allowed by id, and not only as a member of a group.
func (a Allow) listed(user orchestrator.PersonID) bool { return slices.Contains(a.Users, user) }
