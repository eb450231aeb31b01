package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// RightsOf selects where the permissions of a turn come from.
type RightsOf string

// RightsOf values. The permission mode and the rules of the chat apply only with RightsOfChat and RightsOfPress.
const (
	RightsOfChat RightsOf = "" // the permission mode and the rules of the conversation apply
	// RightsOfMember is for a group member who is not a user of ductor. The mode never allows more than ask does, and
	// no rules apply.
	RightsOfMember RightsOf = "member"
	RightsOfJob    RightsOf = "job" // only the configuration of the job applies; users are not asked for permission
	// RightsOfPress is for a turn that a user scheduled by pressing a button. The mode and rules of the conversation
	// apply, but the mode is at most Rights.Mode.
	RightsOfPress RightsOf = "press"
	// RightsOfTerminal is for an agent in a terminal. The user at the terminal allows each tool call. Modes and rules
	// of a chat do not apply.
	RightsOfTerminal RightsOf = "terminal"
	// RightsOfOutside is for a call of an Outsider. The mode never allows more than ask does, and no rules apply.
	RightsOfOutside RightsOf = "outside"
)

// Rights are the permissions that the agent of a turn has without asking a user. The store contains the rights of each
// turn. A turn that repeats another turn has the rights of that turn. The zero value means the rights of the
// conversation.
type Rights struct {
	Of RightsOf
	// For RightsOfJob, Mode is the permission mode; if Mode is empty, the configured default applies, but nothing above
	// the mode "ask". For RightsOfPress, Mode is an upper limit for the conversation's mode.
	Mode cli.PermissionMode `toml:"permission" check:"plan|ask|accept-edits|auto|bypass"`
	// Rules and Tools apply only to RightsOfJob.
	Rules []string `toml:"rules"` // patterns of allowed requests; see approval.CheckRights
	// Tools apply in addition to the conversation's lists of allowed and forbidden tools.
	Tools cli.ToolList `toml:",inline"`
}

// OfChat reports whether the permission mode and the rules of the conversation apply.
func (r Rights) OfChat() bool { return r.Of == RightsOfChat || r.Of == RightsOfPress }

// OfListed reports whether a user of ductor sent the prompt, in the chat or through an MCP client.
func (r Rights) OfListed() bool { return r.OfChat() || r.Of == RightsOfOutside }

// ModeIn returns the permission mode of a turn, from the mode of the conversation and the default mode of the
// configuration.
func (r Rights) ModeIn(chat, defaultMode cli.PermissionMode) cli.PermissionMode {
	mode := cmp.Or(r.Mode, AtMostAsk(defaultMode))
	switch {
	case r.OfChat():
		return AtMost(chat, r.Mode)
	case r.Of == RightsOfMember: // a member may do no more than the users of the chat
		return AtMost(mode, chat)
	}
	return mode
}

// Equal reports whether two turns have the same rights.
func (r Rights) Equal(other Rights) bool {
	return r.Of == other.Of && r.Mode == other.Mode && slices.Equal(r.Rules, other.Rules) && r.Tools.Equal(other.Tools)
}

// AtMostAsk returns the stricter of two permission modes: the given one and ask.
func AtMostAsk(mode cli.PermissionMode) cli.PermissionMode {
	if mode == cli.Plan {
		return cli.Plan
	}
	return cli.Ask
}

// Grants reports whether a permission mode allows more than the mode ask.
func Grants(mode cli.PermissionMode) bool { return mode != "" && mode != AtMostAsk(mode) }

// AtMost returns the stricter of two permission modes. An empty second mode means no limit.
func AtMost(mode, most cli.PermissionMode) cli.PermissionMode {
	all := cli.PermissionModes()
	if most != "" && slices.Index(all, most) < slices.Index(all, mode) {
		return most
	}
	return mode
}

// Right is the permission of a user for one kind of action. The user's role determines the rights.
type Right string

// Right values.
const (
	Read           Right = "read"            // read the status, sessions, steps, changes and usage of a conversation
	SendPrompts    Right = "send-prompts"    // send prompts and run them
	EndOwn         Right = "end-own-turns"   // end own turns, and remove own prompts from the queue
	EndAny         Right = "end-any-turn"    // end any turn of the conversation
	ActAsChat      Right = "act-as-the-chat" // run turns with the permission mode and rules of the conversation
	DecideRequests Right = "decide-requests" // decide requests of agents, and answer their questions
	// ChangeSettings: change the model, the permission mode and all other settings of a conversation.
	ChangeSettings Right = "change-settings"
	ChangeSessions Right = "change-sessions"
	ReachFiles     Right = "reach-files" // read and write files of projects; undo and commit the changes of turns
	MakeSchedules  Right = "make-schedules"
	SeeAll         Right = "see-all" // see usage and the audit log of all conversations
	LiftBudgets    Right = "lift-budgets"
	ManageUsers    Right = "manage-users"
	ManageDuctor   Right = "manage-ductor" // see the health of ductor
)

// UserRole determines the rights of a user. Do not confuse it with Role, which is a system prompt.
type UserRole string

// UserRole values.
const (
	RoleNone   UserRole = "" // a stranger, whom ductor does not answer
	RoleOwner  UserRole = "owner"
	RoleUser   UserRole = "user"
	RoleViewer UserRole = "viewer"
	RoleMember UserRole = "member" // a member of an allowed group who is not a user of ductor
)

// Rights returns the rights of users with this role.
func (r UserRole) Rights() []Right {
	switch r {
	case RoleOwner:
		return append(RoleUser.Rights(), SeeAll, LiftBudgets, ManageUsers, ManageDuctor)
	case RoleUser:
		return []Right{Read, SendPrompts, EndOwn, EndAny, ActAsChat, DecideRequests, ChangeSettings, ChangeSessions,
			ReachFiles, MakeSchedules}
	case RoleMember:
		return []Right{SendPrompts, EndOwn}
	case RoleViewer:
		return []Right{Read}
	}
	return nil
}

// May reports whether users with this role have a right.
func (r UserRole) May(do Right) bool { return slices.Contains(r.Rights(), do) }

// OfTurns returns the kind of rights for turns that a user with this role starts.
func (r UserRole) OfTurns() RightsOf {
	if r.May(ActAsChat) {
		return RightsOfChat
	}
	return RightsOfMember
}

// UserRoles returns the roles that an owner can assign to a user.
func UserRoles() []UserRole { return []UserRole{RoleOwner, RoleUser, RoleViewer} }

// ParseUserRole returns the role with this name. It returns false if owners cannot assign such a role.
func ParseUserRole(name string) (UserRole, bool) {
	for _, r := range UserRoles() {
		if string(r) == name {
			return r, true
		}
	}
	return RoleNone, false
}

// Roster maps the users of ductor to their roles.
type Roster map[PersonID]UserRole

// RoleOf implements updates.Users.
func (l Roster) RoleOf(user PersonID) UserRole {
	if role, ok := l[user]; ok {
		return role
	}
	return RoleNone
}

// Having returns the users who have this right, sorted by ID.
func (l Roster) Having(do Right) []PersonID {
	var all []PersonID
	for user, role := range l {
		if role.May(do) {
			all = append(all, user)
		}
	}
	slices.Sort(all)
	return all
}

// JoinedUser is a user who accepted an owner's invitation, unlike the users whom the configuration lists.
type JoinedUser struct {
	ID      PersonID
	Name    string
	Role    UserRole
	By      PersonID // the owner who created the invitation
	Joined  time.Time
	Greeted bool // ductor has sent the welcome message to the user and a message to the owner
}

// Invitation lets one user join, until it expires.
type Invitation struct {
	Hash    []byte // hash of the invitation's code; the code itself is not stored
	Role    UserRole
	By      PersonID
	Expires time.Time
}

// UserStore stores users who joined, and open invitations. internal/store implements it.
type UserStore interface {
	// JoinedUser returns a user who accepted an invitation, or false.
	JoinedUser(ctx context.Context, id PersonID) (JoinedUser, bool, error)
	// JoinedUsers lists the users who accepted an invitation, the earliest first.
	JoinedUsers(ctx context.Context) ([]JoinedUser, error)
	// SetUserRole changes the role of a user who accepted an invitation, and adds the audit entry. It returns false if
	// there is no such user.
	SetUserRole(ctx context.Context, id PersonID, role UserRole, audit AuditEntry) (bool, error)
	// RemoveUser deletes a user who accepted an invitation, pauses the jobs of the user's private chat, and adds the
	// audit entry. It returns false if there is no such user.
	RemoveUser(ctx context.Context, id PersonID, audit AuditEntry) (bool, error)
	// UserGreeted sets JoinedUser.Greeted.
	UserGreeted(ctx context.Context, id PersonID) error
	// Invite stores an invitation and adds the audit entry.
	Invite(ctx context.Context, i Invitation, audit AuditEntry) error
	// Invitations lists the invitations that are still valid at a time, oldest first. It deletes expired invitations.
	Invitations(ctx context.Context, at time.Time) ([]Invitation, error)
	// CloseInvitations deletes all open invitations.
	CloseInvitations(ctx context.Context) error
	// Join deletes the invitation with this hash and stores the user who accepted it. It returns false if no invitation
	// has this hash.
	Join(ctx context.Context, hash []byte, u JoinedUser, audit AuditEntry) (bool, error)
}
