package orchestrator

import (
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ApprovalID is random. Only users who see the approval know it.
type ApprovalID string

// ApprovalState is the state of an approval. An approval changes its state once, from open to another state.
type ApprovalState string

// ApprovalState values.
const (
	ApprovalOpen      ApprovalState = "open"
	ApprovalAllowed   ApprovalState = "allowed"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalAnswered  ApprovalState = "answered"  // a question was answered
	ApprovalWithdrawn ApprovalState = "withdrawn" // the agent no longer waits: it gave up, or its turn ended
	ApprovalExpired   ApprovalState = "expired"   // no user answered in time, which denied it
)

// Approval is a decision that an agent waits for: on a tool request, or on questions.
//
// If a turn makes identical requests at the same time, they share one approval, and its decision answers all of them.
type Approval struct {
	ID    ApprovalID
	Nonce string // random; a decision must include it
	ApprovalRequest
	ApprovalTerms
	Decision
}

// ApprovalRequest is the request of an agent. Either Request or Questions is set, never both.
type ApprovalRequest struct {
	Turn         cli.TurnID
	Session      SessionID
	Conversation ConversationID
	Agent        cli.Agent
	AgentIDs     []cli.ApprovalID // the agent's own IDs for the request, in order of arrival
	Dir          string           // the working directory of the turn
	Sandbox      cli.Sandbox      // where the turn runs; empty is this host
	Asked        time.Time

	Request   *cli.ApprovalAsked
	Links     []Link // the paths of Request that are or contain a symbolic link in the agent's environment
	Questions []cli.Question
}

// Link is a path that leads to another place, because the path itself or one of its parent directories is a symbolic
// link.
type Link struct {
	Path    string `json:"path"`              // as the request names it
	Real    string `json:"real"`              // target; relative to the working directory if it is below it
	Outside bool   `json:"outside,omitempty"` // the target is outside of the working directory
}

// ApprovalTerms holds who may decide, the deadline, and the rules that the users can create.
type ApprovalTerms struct {
	Approvers []PersonID // the only users who may decide
	Expires   time.Time

	// SessionRule and Rule are the exact rules that AllowSession and AllowPattern would create, in words for users. An
	// empty rule means that ductor does not offer it.
	SessionRule string
	Rule        string
	// Edits means that users can choose AllowEdits.
	Edits bool
}

// Decision is the state of an approval and the reason for it. The state changes once, from ApprovalOpen to another
// state.
type Decision struct {
	State  ApprovalState
	By     PersonID // the user who decided; 0 if none did, for example if a rule decided
	Ruled  string   // the rule that decided, or that the decision created; may be empty
	Reason string   // one sentence; may be empty
	// Answers has the chosen labels or the user's own words for each question. The store keeps no answers if a question
	// has a Secret.
	Answers [][]string
	Decided time.Time // zero while open
}

// TerminalTurn is the prefix of turn IDs for requests of an agent in a terminal. ductor does not run that agent, so the
// store has no such turn.
const TerminalTurn = "terminal-"

// OfTerminal reports whether an agent in a terminal makes the request.
func (a ApprovalRequest) OfTerminal() bool { return strings.HasPrefix(string(a.Turn), TerminalTurn) }

// Same returns the number of identical requests that the approval stands for.
func (a ApprovalRequest) Same() int { return len(a.AgentIDs) }

// Offers returns the choices that users have. If a message cannot show all of the approval, it must not offer a choice
// that allows it.
func (a Approval) Offers() []Choice {
	switch {
	case a.Request == nil:
		return []Choice{Answer, Deny}
	case !a.Request.Allowable():
		return []Choice{Deny}
	}
	var all []Choice
	settings := a.Request.Tool == cli.ProjectTool // users allow settings until the settings change, or deny them
	if !settings {
		all = append(all, AllowOnce)
	}
	if a.SessionRule != "" && !settings {
		all = append(all, AllowSession)
	}
	if a.Rule != "" {
		all = append(all, AllowPattern)
	}
	if a.Edits {
		all = append(all, AllowEdits)
	}
	return append(all, Deny)
}

// WhyClosed returns the error that explains why users can no longer decide the approval, or nil if they can.
func (a Approval) WhyClosed(now time.Time) error {
	switch {
	case a.State == ApprovalWithdrawn:
		return ErrApprovalWithdrawn
	case a.State == ApprovalExpired, a.State == ApprovalOpen && !now.Before(a.Expires):
		return ErrApprovalExpired
	case a.State != ApprovalOpen:
		return ErrApprovalDecided
	}
	return nil
}

// RuledByMode is the value of Approval.Ruled if the permission mode, not a rule, allowed an edit.
const RuledByMode = string(cli.AcceptEdits)

// RuledByTools is the value of Approval.Ruled if a tool list denied a request.
const RuledByTools = "tools"

// Choice is a user's decision on an approval.
type Choice string

// Choice values. Users can deny every approval, allow requests, and answer questions.
const (
	AllowOnce    Choice = "once"
	AllowSession Choice = "session" // allows the request and creates SessionRule, which lasts as long as the session
	AllowPattern Choice = "pattern" // allows the request and creates Rule, which lasts until a user revokes it
	// AllowEdits allows the request and switches the conversation to accept-edits: its agents may then edit files in
	// the working directory without asking.
	AllowEdits Choice = "edits"
	Deny       Choice = "deny"   // with a Reason, if the user gave one
	Answer     Choice = "answer" // answers the questions, with Answers
)

// Verdict is a user's choice with its reason or answers.
type Verdict struct {
	Choice  Choice
	Reason  string
	Answers [][]string
	Files   []Attachment // files that Reason or Answers mention
}

// ApprovalScreen shows approvals to users. Package bot implements it.
type ApprovalScreen interface {
	// ShowApproval shows the current state of an approval in its Conversation. It does not wait for the network. Calls
	// for one approval are serial. The caller calls it:
	//   - if the approval is new
	//   - if another identical request joined it
	//   - if it is open again after a restart
	//   - after the decision
	ShowApproval(approval Approval)
}

// Approvals lets users decide approvals and revoke rules. *approval.Service implements it.
type Approvals interface {
	// Decide decides an approval, once, and returns the approval's current state. nonce is Approval.Nonce. The store
	// marks by.Updates as handled in the transaction that stores the decision.
	//
	// Decide checks for errors in this order. The first three return a zero approval.
	//   - ErrNoApproval: the ID is unknown or forged
	//   - ErrElsewhere
	//   - ErrNotApprover
	//   - ErrApprovalDecided
	//   - ErrApprovalExpired
	//   - ErrApprovalWithdrawn
	//   - ErrBadChoice: the approval does not offer the choice, or the answers do not fit the questions
	//   - ErrNotBrought
	//   - ErrNotTold: the decision is stored, but did not reach the agent
	Decide(ctx context.Context, id ApprovalID, nonce string, by Press, v Verdict) (Approval, error)
	// Approval loads an approval of the conversation. It returns ErrNoApproval for an unknown ID. If the approval
	// belongs to another conversation, it returns the approval and ErrElsewhere.
	Approval(ctx context.Context, id ApprovalID, in ConversationID) (Approval, error)

	// Revoke deletes a rule. Requests that the rule already allowed stay allowed. It returns ErrNoRule if the
	// conversation has no such rule.
	Revoke(ctx context.Context, id RuleID, by Press) error
	// Audit lists the audit entries since a time, newest first.
	Audit(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}
