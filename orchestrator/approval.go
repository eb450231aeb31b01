package orchestrator

import (
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ApprovalID is random. Only users who see the approval know it.
type ApprovalID string

// ApprovalState is the state of an approval. Only an open approval changes, and only once.
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

// ApprovalRequest is the agent's request. Either Request or Questions is set, never both.
type ApprovalRequest struct {
	Turn         cli.TurnID
	Session      SessionID
	Conversation ConversationID
	Agent        cli.Agent
	AgentIDs     []cli.ApprovalID // the agent's own IDs for it, in order of arrival
	Dir          string           // the working directory of the turn
	Sandbox      cli.Sandbox      // where the turn runs; empty is this host
	Asked        time.Time

	Request   *cli.ApprovalAsked
	Links     []Link // the paths of Request that lead elsewhere, as ductor finds them in the agent's environment
	Questions []cli.Question
}

// Link is a path that leads to another place, because the path itself or one of its parent directories is a symbolic
// link.
type Link struct {
	Path    string `json:"path"`              // as in the request
	Real    string `json:"real"`              // relative to the working directory if it is below it
	Outside bool   `json:"outside,omitempty"` // outside of the working directory
}

// ApprovalTerms hold who may decide, the deadline, and the rules that the users can create.
type ApprovalTerms struct {
	Approvers []PersonID // the only users who may decide
	Expires   time.Time

	// SessionRule and Rule are the exact rules that AllowSession and AllowPattern would create, as users read them. An
	// empty one means that ductor does not offer the rule.
	SessionRule string
	Rule        string
	// Edits is set if users can choose AllowEdits.
	Edits bool
}

// Decision is the state of an approval and the way it was reached. Only an open approval changes, and only once.
type Decision struct {
	State  ApprovalState
	By     PersonID // the user who decided; 0 if none did, for example if a rule decided
	Ruled  string   // the rule that decided, or that the decision created; may be empty
	Reason string   // one sentence; may be empty
	// Answers has the chosen labels or the user's own words for each question. They are not stored if a question has a
	// Secret.
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

// Offers returns the choices that users have. A place that cannot show all of the approval offers no choice that allows
// it.
func (a Approval) Offers() []Choice {
	switch {
	case a.Request == nil:
		return []Choice{Answer, Deny}
	case !a.Request.Allowable():
		return []Choice{Deny}
	}
	var all []Choice
	settings := a.Request.Tool == cli.ProjectTool // used until they change, or ignored
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

// WhyClosed returns the error that explains why users can no longer decide the approval. It returns nil if they can.
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
	AllowSession Choice = "session" // and create SessionRule, for as long as the session is used
	AllowPattern Choice = "pattern" // and create Rule, for this conversation until a user revokes it
	// AllowEdits allows the request and switches the conversation to accept-edits: its agents may then edit files in
	// the working directory without asking.
	AllowEdits Choice = "edits"
	Deny       Choice = "deny"   // with a Reason, if the user gave one
	Answer     Choice = "answer" // with Answers
)

// Verdict is a user's choice with its reason or answers.
type Verdict struct {
	Choice  Choice
	Reason  string
	Answers [][]string
	Files   []Attachment // that Reason or Answers name
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
	// Decide decides an approval, once, and returns its current state. nonce is Approval.Nonce. by.Updates are marked
	// handled together with the decision, and only then.
	//
	// Decide checks for errors in this order. The first three return a zero approval.
	//   - ErrNoApproval: it is unknown or forged
	//   - ErrElsewhere
	//   - ErrNotApprover
	//   - ErrApprovalDecided
	//   - ErrApprovalExpired
	//   - ErrApprovalWithdrawn
	//   - ErrBadChoice: the approval does not offer the choice, or the answers do not fit
	//   - ErrNotBrought
	//   - ErrNotTold: the decision is stored, but did not reach the agent
	Decide(ctx context.Context, id ApprovalID, nonce string, by Press, v Verdict) (Approval, error)
	// Approval loads an approval of the conversation. It returns ErrNoApproval for an unknown ID, and ErrElsewhere
	// together with the approval if it belongs to another conversation.
	Approval(ctx context.Context, id ApprovalID, in ConversationID) (Approval, error)

	// Revoke deletes a rule. Requests that the rule already allowed stay allowed. It returns ErrNoRule if the
	// conversation has no such rule.
	Revoke(ctx context.Context, id RuleID, by Press) error
	// Audit lists the audit entries since a time, newest first.
	Audit(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}
