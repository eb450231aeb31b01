package orchestrator

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// RightsOf says whose rights a turn has.
type RightsOf string

// Whose rights a turn can have. All but RightsOfChat and RightsOfPress use neither the permission mode nor the rules of the chat.
const (
	RightsOfChat   RightsOf = ""       // the mode and the rules that were chosen in its conversation
	RightsOfMember RightsOf = "member" // of a user who is not listed: at most ask, and no rule
	RightsOfJob    RightsOf = "job"    // unattended: what the job's own configuration grants, and no more
	RightsOfPress  RightsOf = "press"  // of a listed user who had a turn run later: those of the chat, at most in Rights.Mode
	// RightsOfTerminal are those of an agent in a terminal: its user allows each call, and no rule or mode of a chat counts.
	RightsOfTerminal RightsOf = "terminal"
)

// Rights is what an agent may do for a prompt without being allowed to by a button. It is stored with the turn, and a
// turn that repeats another has the same. The zero value is the rights of the chat.
type Rights struct {
	Of RightsOf
	// Mode is the mode of RightsOfJob, where empty is the stricter of the configured default and ask. Of RightsOfPress it is the most
	// that the mode of the conversation counts for.
	Mode cli.PermissionMode
	// The rest is of RightsOfJob.
	Rules []string     // patterns that go through; see approval.CheckRights
	Tools cli.ToolList // counts besides the lists of the chat
}

// OfChat says whether the choices of the conversation count.
func (r Rights) OfChat() bool { return r.Of == RightsOfChat || r.Of == RightsOfPress }

// Equal says whether two turns may do the same.
func (r Rights) Equal(other Rights) bool {
	return r.Of == other.Of && r.Mode == other.Mode && slices.Equal(r.Rules, other.Rules) && r.Tools.Equal(other.Tools)
}

// AtMostAsk is the stricter of a mode and ask.
func AtMostAsk(mode cli.PermissionMode) cli.PermissionMode {
	if mode == cli.Plan {
		return cli.Plan
	}
	return cli.Ask
}

// Grants reports whether a mode lets an agent do more than ask does.
func Grants(mode cli.PermissionMode) bool { return mode != "" && mode != AtMostAsk(mode) }

// AtMost is the stricter of two modes; an empty most limits nothing.
func AtMost(mode, most cli.PermissionMode) cli.PermissionMode {
	all := cli.PermissionModes()
	if most != "" && slices.Index(all, most) < slices.Index(all, mode) {
		return most
	}
	return mode
}

// Right is something that a user may do or not.
type Right string

// The rights.
const (
	Read           Right = "read"            // status, sessions, steps, changes and usage of the conversation
	SendPrompts    Right = "send-prompts"    // and have them run
	EndOwn         Right = "end-own-turns"   // and take own prompts out of the queue
	EndAny         Right = "end-any-turn"    // of the conversation
	ActAsChat      Right = "act-as-the-chat" // turns have the mode and the rules that were chosen in the conversation
	DecideRequests Right = "decide-requests" // of agents, and answer their questions
	ChangeSettings Right = "change-settings" // models, permissions and all else that a conversation chooses
	ChangeSessions Right = "change-sessions"
	ReachFiles     Right = "reach-files" // of projects: read and write them, undo and commit what turns changed
	MakeSchedules  Right = "make-schedules"
	SeeAll         Right = "see-all" // usage and audit of every conversation
	LiftBudgets    Right = "lift-budgets"
	ManageUsers    Right = "manage-users"
	ManageDuctor   Right = "manage-ductor" // look at its health
)

// UserRole says which rights a user has. It is not a Role, which is a prompt.
type UserRole string

// The roles of users. The zero value has no rights.
const (
	RoleNone   UserRole = "" // of a user who gets no answer
	RoleOwner  UserRole = "owner"
	RoleUser   UserRole = "user"
	RoleViewer UserRole = "viewer"
	RoleMember UserRole = "member" // of an allowed group, not listed
)

// Rights are those of a role. This is the one table that says who may do what.
func (r UserRole) Rights() []Right {
	switch r {
	case RoleOwner:
		return append(RoleUser.Rights(), SeeAll, LiftBudgets, ManageUsers, ManageDuctor)
	case RoleUser:
		return []Right{Read, SendPrompts, EndOwn, EndAny, ActAsChat, DecideRequests, ChangeSettings, ChangeSessions, ReachFiles, MakeSchedules}
	case RoleMember:
		return []Right{SendPrompts, EndOwn}
	case RoleViewer:
		return []Right{Read}
	}
	return nil
}

// May says whether a role has a right.
func (r UserRole) May(do Right) bool { return slices.Contains(r.Rights(), do) }

// OfTurns says whose rights the turns of a user have.
func (r UserRole) OfTurns() RightsOf {
	if r.May(ActAsChat) {
		return RightsOfChat
	}
	return RightsOfMember
}

// UserRoles are the roles that a user can be given.
func UserRoles() []UserRole { return []UserRole{RoleOwner, RoleUser, RoleViewer} }

// ParseUserRole reads the name of a role that a user can be given; false for any other word.
func ParseUserRole(name string) (UserRole, bool) {
	for _, r := range UserRoles() {
		if string(r) == name {
			return r, true
		}
	}
	return RoleNone, false
}

// Roster is the role of each user that a list names.
type Roster map[PersonID]UserRole

// RoleOf gives the role of a user; RoleNone for one that is not in the list.
func (l Roster) RoleOf(user PersonID) UserRole {
	if role, ok := l[user]; ok {
		return role
	}
	return RoleNone
}

// Having lists the users of a list who have a right, by id.
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

// JoinedUser is a user who took an invitation of an owner, and is not in the configuration.
type JoinedUser struct {
	ID      PersonID
	Name    string
	Role    UserRole
	By      PersonID // who made the invitation
	Joined  time.Time
	Greeted bool // the owner and the user were told
}

// Invitation lets one user join before it expires.
type Invitation struct {
	Hash    []byte // of the code, which is stored nowhere
	Role    UserRole
	By      PersonID
	Expires time.Time
}

// UserStore keeps users who joined, and open invitations. internal/store implements it.
type UserStore interface {
	// JoinedUser finds a user who joined; false for none.
	JoinedUser(ctx context.Context, id PersonID) (JoinedUser, bool, error)
	// JoinedUsers lists the users who joined, the first of them first.
	JoinedUsers(ctx context.Context) ([]JoinedUser, error)
	// SetUserRole gives a user who joined another role, and audits that; false if there is no such user.
	SetUserRole(ctx context.Context, id PersonID, role UserRole, audit AuditEntry) (bool, error)
	// RemoveUser forgets a user who joined, pauses the jobs of their private chat, and audits that; false if there is no such user.
	RemoveUser(ctx context.Context, id PersonID, audit AuditEntry) (bool, error)
	// UserGreeted records that the owner and the user were told.
	UserGreeted(ctx context.Context, id PersonID) error
	// Invite opens an invitation, and audits that.
	Invite(ctx context.Context, i Invitation, audit AuditEntry) error
	// Invitations lists the open invitations that have not expired at a moment, the oldest first, and deletes the others.
	Invitations(ctx context.Context, at time.Time) ([]Invitation, error)
	// CloseInvitations forgets all open invitations.
	CloseInvitations(ctx context.Context) error
	// Join takes an invitation, which is gone then, and stores who took it; false if it is not open.
	Join(ctx context.Context, hash []byte, u JoinedUser, audit AuditEntry) (bool, error)
}
