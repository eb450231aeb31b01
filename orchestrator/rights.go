package orchestrator

import (
	"slices"

	"ductor/cli"
)

// RightsOf says whose rights a turn has.
type RightsOf string

// Whose rights a turn can have. All but RightsOfChat use neither the permission mode nor the rules of the chat.
const (
	RightsOfChat   RightsOf = ""       // the mode and the rules that were chosen in its conversation
	RightsOfMember RightsOf = "member" // of a user who is not listed: at most ask, and no rule
	RightsOfJob    RightsOf = "job"    // unattended: what the job's own configuration grants, and no more
)

// Rights is what an agent may do for a prompt without being allowed to by a button. It is stored with the turn, and a
// turn that repeats another has the same. The zero value is the rights of the chat.
type Rights struct {
	Of RightsOf
	// The rest is of RightsOfJob.
	Mode  cli.PermissionMode // empty: the stricter of the configured default and ask
	Rules []string           // patterns that go through; see ParsePattern
	Tools cli.ToolList       // counts besides the lists of the chat
}

// OfChat says whether the choices of the conversation count.
func (r Rights) OfChat() bool { return r.Of == RightsOfChat }

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
