package orchestrator

import (
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ApprovalID identifies an approval. It is random, so users cannot guess the ID of an approval that they do not see.
type ApprovalID string

// ApprovalState is the state of an approval. An approval changes its state once, from open to another state.
type ApprovalState string

// ApprovalState values.
const (
	ApprovalOpen      ApprovalState = "open"
	ApprovalAllowed   ApprovalState = "allowed"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalAnswered  ApprovalState = "answered"  // a question was answered
	ApprovalWithdrawn ApprovalState = "withdrawn" // the agent stopped waiting, or its turn ended
	ApprovalExpired   ApprovalState = "expired"   // no user decided in time, so the request was denied
)

// Approval contains a request of an agent and the decision about it. The request is to use a tool, or to answer
// questions.
//
// If a turn makes identical requests at the same time, they share one approval and get the same decision.
type Approval struct {
	ID    ApprovalID
	Nonce string // a random code; a decision must contain it
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
	AgentIDs     []cli.ApprovalID // the agent's own IDs of the identical requests, in order of arrival
	Dir          string           // the working directory of the turn
	Sandbox      cli.Sandbox      // the sandbox in which the turn runs; empty means this host
	Asked        time.Time

	Request   *cli.ApprovalAsked
	Links     []Link // paths in Request that lead through a symbolic link in the agent's environment
	Questions []cli.Question
}

// Link is a path that is a symbolic link, or that contains one in its parent directories.
type Link struct {
	Path    string `json:"path"`              // the path as the request contains it
	Real    string `json:"real"`              // target; relative if it is inside the working directory
	Outside bool   `json:"outside,omitempty"` // the target is outside of the working directory
}

// ApprovalTerms defines who may decide an approval, until when, and which rules the decision can create.
type ApprovalTerms struct {
	Approvers []PersonID // the only users who may decide
	Expires   time.Time

	// SessionRule and Rule are texts that tell users which rules AllowSession and AllowPattern would create. An empty
	// text means that ductor does not offer the choice.
	SessionRule string
	Rule        string
	// Edits means that users can choose AllowEdits.
	Edits bool
}

// Decision contains the state of an approval, and who or what decided it. The state changes once, from ApprovalOpen to
// another state.
type Decision struct {
	State  ApprovalState
	By     PersonID // the user who decided; 0 if no user did, for example if a rule allowed the request
	Ruled  string   // the rule that allowed the request, or that the user created; may be empty
	Reason string   // one sentence for the agent or the user; may be empty
	// Answers contains one list for each question: the labels that the user chose, or the user's own text. If a
	// question has Secret set, the store does not contain the answers.
	Answers [][]string
	Decided time.Time // zero while open
}

// TerminalTurn is the prefix of turn IDs for requests from agents that a user runs in a terminal. ductor does not run
// these agents, so the store does not contain their turns.
const TerminalTurn = "terminal-"

// OfTerminal reports whether the request comes from an agent that a user runs in a terminal.
func (a ApprovalRequest) OfTerminal() bool { return strings.HasPrefix(string(a.Turn), TerminalTurn) }

// Same returns the number of identical requests that share the approval.
func (a ApprovalRequest) Same() int { return len(a.AgentIDs) }

// Offers returns the choices that users have. A caller that cannot show the whole approval must not show the choices
// that allow the request.
func (a Approval) Offers() []Choice {
	switch {
	case a.Request == nil:
		return []Choice{Answer, Deny}
	case !a.Request.Allowable():
		return []Choice{Deny}
	}
	var all []Choice
	// Users cannot allow project settings for one request only: the permission lasts until the settings change.
	settings := a.Request.Tool == cli.ProjectTool
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

// WhyClosed returns nil if users can still decide the approval. Otherwise it returns ErrApprovalWithdrawn,
// ErrApprovalExpired or ErrApprovalDecided.
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

// RuledByMode is the value of Approval.Ruled if the permission mode allowed an edit, without any rule.
const RuledByMode = string(cli.AcceptEdits)

// RuledByTools is the value of Approval.Ruled if a list of forbidden tools denied a request.
const RuledByTools = "tools"

// Choice is a user's decision on an approval.
type Choice string

// Choice values. Users can choose Deny for every approval, Answer for questions, and the other values for requests.
const (
	AllowOnce    Choice = "once"
	AllowSession Choice = "session" // allows the request and creates SessionRule, which lasts as long as the session
	AllowPattern Choice = "pattern" // allows the request and creates Rule, which lasts until a user revokes it
	// AllowEdits allows the request and switches the conversation to the mode accept-edits. In this mode agents may
	// edit files in the working directory without asking.
	AllowEdits Choice = "edits"
	Deny       Choice = "deny"   // denies the request; the user may give a Reason
	Answer     Choice = "answer" // answers the agent's questions with Verdict.Answers
)

// Verdict is a user's choice, with a reason or with answers to questions.
type Verdict struct {
	Choice  Choice
	Reason  string
	Answers [][]string
	Files   []Attachment // files that the user attached; Reason or Answers contain their names
}

// ApprovalScreen shows approvals to users. Package bot implements it.
type ApprovalScreen interface {
	// ShowApproval shows the current state of an approval in its Conversation. It does not wait for the network. Calls
	// for one approval are serial. The caller calls it:
	//   - if the approval is new
	//   - if an identical request now shares the approval
	//   - if the approval is open again after a restart
	//   - after the decision
	// isNew is false if the chat may already show the approval, because this process or an earlier one has called
	// ShowApproval for it.
	ShowApproval(approval Approval, isNew bool)
}

// Approvals lets users decide approvals and revoke rules. *approval.Service implements it.
type Approvals interface {
	// Decide stores a user's decision and passes it to the agent. An approval can be decided only once. The nonce must
	// be equal to Approval.Nonce. Decide returns the approval's new state. In the transaction that stores the decision,
	// Decide also marks by.Updates as handled.
	//
	// Decide checks for errors in this order. The first three return a zero approval.
	//   - ErrNoApproval: the ID is unknown or forged
	//   - ErrElsewhere: the approval belongs to another conversation
	//   - ErrNotApprover: this user may not decide the approval
	//   - ErrApprovalDecided
	//   - ErrApprovalExpired
	//   - ErrApprovalWithdrawn
	//   - ErrBadChoice: the approval does not offer the choice, or the answers do not fit the questions
	//   - ErrNotBrought: the files of the verdict cannot be copied to the agent
	//   - ErrNotTold: the decision is stored, but did not reach the agent
	Decide(ctx context.Context, id ApprovalID, nonce string, by Press, v Verdict) (Approval, error)
	// Approval loads an approval of the conversation. It returns ErrNoApproval for an unknown ID. If the approval
	// belongs to another conversation, Approval returns it together with ErrElsewhere.
	Approval(ctx context.Context, id ApprovalID, in ConversationID) (Approval, error)

	// Revoke deletes a rule. Requests that the rule already allowed stay allowed. Revoke returns ErrNoRule if the
	// conversation has no such rule.
	Revoke(ctx context.Context, id RuleID, by Press) error
	// Audit lists the audit entries since a time, newest first.
	Audit(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}
