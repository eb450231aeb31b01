package orchestrator

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// RightsOf names the source of a turn's rights.
type RightsOf string

// RightsOf values. Only RightsOfChat and RightsOfPress use the permission mode and the rules of the chat.
const (
	RightsOfChat   RightsOf = ""       // the mode and rules of the turn's conversation
	RightsOfMember RightsOf = "member" // for a group member who is not a listed user: at most ask, and no rules
	RightsOfJob    RightsOf = "job"    // only the rights that the job's own configuration grants; no user is asked
	// RightsOfPress is for a turn that a listed user scheduled by a button. It has the rights of the chat, limited to
	// Rights.Mode.
	RightsOfPress RightsOf = "press"
	// RightsOfTerminal is for an agent in a terminal. The user of the terminal allows each call; no rule or mode of a
	// chat applies.
	RightsOfTerminal RightsOf = "terminal"
	// RightsOfOutside is for an Outsider. Its mode is at most ask, and no rule of a chat applies.
	RightsOfOutside RightsOf = "outside"
)

// Rights are the permissions that the agent of a prompt has without asking. The store keeps them with the turn. A turn
// that repeats another turn has the same rights. The zero value means the rights of the chat.
type Rights struct {
	Of RightsOf
	// Mode is the permission mode for RightsOfJob. If it is empty, the mode is the stricter of the configured default
	// and ask. For RightsOfPress, Mode is an upper limit for the conversation's mode.
	Mode cli.PermissionMode `toml:"permission" check:"plan|ask|accept-edits|auto|bypass"`
	// The following fields apply only to RightsOfJob.
	Rules []string     `toml:"rules"`   // patterns of allowed requests; see approval.CheckRights
	Tools cli.ToolList `toml:",inline"` // applies in addition to the tool lists of the chat
}

// OfChat reports whether the mode and rules of the conversation apply.
func (r Rights) OfChat() bool { return r.Of == RightsOfChat || r.Of == RightsOfPress }

// OfListed reports whether the prompt comes from a listed user, in the chat or through an MCP client.
func (r Rights) OfListed() bool { return r.OfChat() || r.Of == RightsOfOutside }

// Equal reports whether two turns have the same rights.
func (r Rights) Equal(other Rights) bool {
	return r.Of == other.Of && r.Mode == other.Mode && slices.Equal(r.Rules, other.Rules) && r.Tools.Equal(other.Tools)
}

// AtMostAsk returns the stricter of a mode and ask.
func AtMostAsk(mode cli.PermissionMode) cli.PermissionMode {
	if mode == cli.Plan {
		return cli.Plan
	}
	return cli.Ask
}

// Grants reports whether a mode allows an agent more than ask does.
func Grants(mode cli.PermissionMode) bool { return mode != "" && mode != AtMostAsk(mode) }

// AtMost returns the stricter of two modes. An empty most means no limit.
func AtMost(mode, most cli.PermissionMode) cli.PermissionMode {
	all := cli.PermissionModes()
	if most != "" && slices.Index(all, most) < slices.Index(all, mode) {
		return most
	}
	return mode
}

// Right is an action that users may do if their role includes it.
type Right string

// The rights.
const (
	Read           Right = "read"            // read the status, sessions, steps, changes and usage of the conversation
	SendPrompts    Right = "send-prompts"    // send prompts and run them
	EndOwn         Right = "end-own-turns"   // end own turns, and remove own prompts from the queue
	EndAny         Right = "end-any-turn"    // end any turn of the conversation
	ActAsChat      Right = "act-as-the-chat" // turns of the user have the conversation's mode and rules
	DecideRequests Right = "decide-requests" // decide requests of agents, and answer their questions
	ChangeSettings Right = "change-settings" // change models, permissions and all other choices of a conversation
	ChangeSessions Right = "change-sessions"
	ReachFiles     Right = "reach-files" // read and write files of projects, undo and commit the changes of turns
	MakeSchedules  Right = "make-schedules"
	SeeAll         Right = "see-all" // see usage and audit of every conversation
	LiftBudgets    Right = "lift-budgets"
	ManageUsers    Right = "manage-users"
	ManageDuctor   Right = "manage-ductor" // see the health of ductor
)

// UserRole is the set of rights of a user. It is not related to Role, which is a system prompt.
type UserRole string

// The roles of users. The zero value has no rights.
const (
	RoleNone   UserRole = "" // a user who gets no answer
	RoleOwner  UserRole = "owner"
	RoleUser   UserRole = "user"
	RoleViewer UserRole = "viewer"
	RoleMember UserRole = "member" // a member of an allowed group who is not a listed user
)

// Rights returns the rights of a role. Only this method defines them.
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

// May reports whether a role has a right.
func (r UserRole) May(do Right) bool { return slices.Contains(r.Rights(), do) }

// OfTurns returns the source of rights for the turns of a user with this role.
func (r UserRole) OfTurns() RightsOf {
	if r.May(ActAsChat) {
		return RightsOfChat
	}
	return RightsOfMember
}

// UserRoles returns the roles that can be assigned to a user.
func UserRoles() []UserRole { return []UserRole{RoleOwner, RoleUser, RoleViewer} }

// ParseUserRole parses the name of an assignable role. It returns false for any other word.
func ParseUserRole(name string) (UserRole, bool) {
	for _, r := range UserRoles() {
		if string(r) == name {
			return r, true
		}
	}
	return RoleNone, false
}

// Roster maps listed users to their roles.
type Roster map[PersonID]UserRole

// RoleOf implements updates.Users.
func (l Roster) RoleOf(user PersonID) UserRole {
	if role, ok := l[user]; ok {
		return role
	}
	return RoleNone
}

// Having returns the users who have a right, sorted by ID.
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

// JoinedUser is a user who accepted an owner's invitation and is not in the configuration.
type JoinedUser struct {
	ID      PersonID
	Name    string
	Role    UserRole
	By      PersonID // the owner who created the invitation
	Joined  time.Time
	Greeted bool // ductor has notified the owner and the user
}

// Invitation lets one user join before it expires.
type Invitation struct {
	Hash    []byte // hash of the code; the store does not contain the code
	Role    UserRole
	By      PersonID
	Expires time.Time
}

// UserStore stores users who joined, and open invitations. internal/store implements it.
type UserStore interface {
	// JoinedUser returns a user who joined. It returns false if no such user exists.
	JoinedUser(ctx context.Context, id PersonID) (JoinedUser, bool, error)
	// JoinedUsers lists the users who joined, the earliest first.
	JoinedUsers(ctx context.Context) ([]JoinedUser, error)
	// SetUserRole changes the role of a user who joined, and audits the change. It returns false if no such user
	// exists.
	SetUserRole(ctx context.Context, id PersonID, role UserRole, audit AuditEntry) (bool, error)
	// RemoveUser deletes a user who joined, pauses the jobs of the user's private chat, and audits the removal. It
	// returns false if no such user exists.
	RemoveUser(ctx context.Context, id PersonID, audit AuditEntry) (bool, error)
	// UserGreeted records that ductor has notified the owner and the user.
	UserGreeted(ctx context.Context, id PersonID) error
	// Invite stores an invitation and audits it.
	Invite(ctx context.Context, i Invitation, audit AuditEntry) error
	// Invitations lists the invitations that are valid at a time, oldest first. It deletes the others.
	Invitations(ctx context.Context, at time.Time) ([]Invitation, error)
	// CloseInvitations deletes all open invitations.
	CloseInvitations(ctx context.Context) error
	// Join deletes an open invitation and stores the user who accepted it. It returns false if the invitation is not
	// open.
	Join(ctx context.Context, hash []byte, u JoinedUser, audit AuditEntry) (bool, error)
}
