package bot

import (
	"slices"

	"ductor/orchestrator"
)

// GroupMembers says who may speak in an allowed group.
type GroupMembers string

// Who may speak in an allowed group. Anything that is not AllMembers means ListedMembers.
const (
	ListedMembers GroupMembers = "listed" // those in Users
	AllMembers    GroupMembers = "all"    // everybody who is in it; who is not in Users may send prompts only
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

// rightsOf says whether somebody who may speak may do all there is, or send prompts only.
func (a Allow) rightsOf(person orchestrator.PersonID) orchestrator.RightsOf {
	if a.listed(person) {
		return orchestrator.RightsOfChat
	}
	return orchestrator.RightsOfMember
}

// listed says whether a person is allowed by name, and not only as a member of a group.
func (a Allow) listed(person orchestrator.PersonID) bool { return slices.Contains(a.Users, person) }
