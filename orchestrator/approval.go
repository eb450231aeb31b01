package orchestrator

import (
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ApprovalID is ours: random, and known only to those who see the approval.
type ApprovalID string

// ApprovalState is where an approval stands. Only an open one changes, and once.
type ApprovalState string

// The states of an approval.
const (
	ApprovalOpen      ApprovalState = "open"
	ApprovalAllowed   ApprovalState = "allowed"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalAnswered  ApprovalState = "answered"  // a question was answered
	ApprovalWithdrawn ApprovalState = "withdrawn" // the agent no longer waits: it gave up, or its turn ended
	ApprovalExpired   ApprovalState = "expired"   // no user answered in time, which denied it
)

// Approval is one thing that an agent waits for users to decide: a request of a tool, or questions.
//
// Identical requests of one turn that are open at the same time are one approval, whose decision answers them all.
type Approval struct {
	ID    ApprovalID
	Nonce string // random; a decision must bring it along
	ApprovalRequest
	ApprovalTerms
	Decision

	// Message is the chat's message that shows the approval, and Sent what is known of it. They are what
	// Approvals.ApprovalShown recorded, Pending and 0 before.
	Message int
	Sent    SendState
}

// ApprovalRequest is what an agent asked. Request or Questions is set, never both.
type ApprovalRequest struct {
	Turn         cli.TurnID
	Session      SessionID
	Conversation ConversationID
	Agent        cli.Agent
	AgentIDs     []cli.ApprovalID // the agent's own ids of it, in the order they came
	Dir          string           // the working directory of the turn
	Sandbox      cli.Sandbox      // where it runs; empty is this host
	Asked        time.Time

	Request   *cli.ApprovalAsked
	Questions []cli.Question
}

// ApprovalTerms say who may decide, until when, and which rules they may make.
type ApprovalTerms struct {
	Approvers []PersonID // the only users who may decide
	Expires   time.Time

	// SessionRule and Rule are the exact rules that AllowSession and AllowPattern would make, as users read
	// them; empty where there is none to offer.
	SessionRule string
	Rule        string
	// Edits says that AllowEdits can be chosen.
	Edits bool
}

// Decision is where an approval stands. Only an open one changes, and once.
type Decision struct {
	State   ApprovalState
	By      PersonID   // the user who decided; 0 where none did, also where a rule decided
	Ruled   string     // the rule that decided, or that the decision made; may be empty
	Reason  string     // one sentence; may be empty
	Answers [][]string // chosen labels or own words, for each question; not kept for a question that has a Secret
	Decided time.Time  // zero while open
}

// TerminalTurn begins the turn of what an agent in a terminal asks, which ductor does not run: the store has no such turn.
const TerminalTurn = "terminal-"

// OfTerminal says that an agent in a terminal asks.
func (a ApprovalRequest) OfTerminal() bool { return strings.HasPrefix(string(a.Turn), TerminalTurn) }

// Same is how many identical requests an approval stands for.
func (a ApprovalRequest) Same() int { return len(a.AgentIDs) }

// WhyClosed says why an approval cannot be decided any more; nil if it can.
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

// RuledByMode stands in Approval.Ruled where no rule but the permission mode let an edit through.
const RuledByMode = string(cli.AcceptEdits)

// RuledByTools stands in Approval.Ruled where a list of tools denied a request.
const RuledByTools = "tools"

// Choice is what a person does with an approval.
type Choice string

// The choices. Every approval can be denied; a request can be allowed, and questions can be answered.
const (
	AllowOnce    Choice = "once"
	AllowSession Choice = "session" // and what SessionRule says, as long as the session is used
	AllowPattern Choice = "pattern" // and what Rule says, in this conversation until it is revoked
	AllowEdits   Choice = "edits"   // and edits in the working directory from now on: the conversation works in accept-edits
	Deny         Choice = "deny"    // with a Reason, if there is one
	Answer       Choice = "answer"  // with Answers
)

// Verdict is a user's choice, and what goes with it.
type Verdict struct {
	Choice  Choice
	Reason  string
	Answers [][]string
	Files   []Attachment // that Reason or Answers name
}

// ApprovalScreen shows users what agents ask. Package bot implements it.
type ApprovalScreen interface {
	// ShowApproval shows an approval, or how it stands now: it is called when the approval is new, when more identical
	// requests joined it, when it is open again after a restart, and once more when it is decided. It does not
	// wait for the network. Calls for one approval come one after the other. What is shown goes to its Conversation.
	ShowApproval(approval Approval)
}

// Approvals is what users do with approvals and rules. *approval.Service implements it.
type Approvals interface {
	// Decide decides an approval, once. nonce is Approval.Nonce. The approval that is returned is as it stands now; it is
	// zero for ErrNoApproval, ErrElsewhere and ErrNotApprover. Errors, in the order they are looked for: ErrNoApproval
	// (unknown or forged), ErrElsewhere, ErrNotApprover, ErrApprovalDecided, ErrApprovalExpired, ErrApprovalWithdrawn, and
	// ErrBadChoice for a choice that this approval does not have or answers that do not fit, and ErrNotBrought.
	// by.Updates are marked handled with the decision, and only then.
	Decide(ctx context.Context, id ApprovalID, nonce string, by Press, v Verdict) (Approval, error)
	// Approval loads an approval of the conversation. ErrNoApproval; ErrElsewhere with the approval of another one.
	Approval(ctx context.Context, id ApprovalID, in ConversationID) (Approval, error)

	// Revoke takes a rule back. What it let through stays. ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id RuleID, by Press) error
	// Audit lists what happened since a moment, newest first.
	Audit(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}
