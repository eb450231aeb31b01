package orchestrator

import (
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

// Ask is one thing that an agent waits for people to decide. Approval or Questions is set, never both.
//
// Identical requests of one turn that are open at the same time are one approval, whose decision answers them all.
type Approval struct {
	ID           ApprovalID
	Nonce        string // random; a decision must bring it along
	Turn         cli.TurnID
	Session      SessionID
	Conversation ConversationID
	Agent        cli.Agent
	AgentIDs     []cli.ApprovalID // the agent's own ids of it, in the order they came
	Dir          string           // the working directory of the turn

	Request   *cli.ApprovalAsked
	Questions []cli.Question

	// SessionRule and Rule are the exact rules that AllowSession and AllowPattern would make, as people read
	// them; empty where there is none to offer.
	SessionRule string
	Rule        string

	Approvers []PersonID // the only users who may decide
	Asked     time.Time
	Expires   time.Time

	State   ApprovalState
	By      PersonID   // the user who decided; 0 where none did, also where a rule decided
	Ruled   string     // the rule that decided, or that the decision made; may be empty
	Reason  string     // one sentence; may be empty
	Answers [][]string // chosen labels or own words, for each question; not kept for a question that has a Secret
	Decided time.Time  // zero while open

	// Message is the chat's message that shows the approval, and Sent what is known of it. They are what
	// Approvals.ApprovalShown was told, Pending and 0 before.
	Message int
	Sent    SendState
}

// Same is how many identical requests the approval stands for.
func (a Approval) Same() int { return len(a.AgentIDs) }

// RuledByMode stands in Approval.Ruled where no rule but the permission mode let an edit through.
const RuledByMode = string(cli.AcceptEdits)

// Choice is what a person does with an approval.
type Choice string

// The choices. Every Ask can be denied; an Approval can be allowed, Questions answered.
const (
	AllowOnce    Choice = "once"
	AllowSession Choice = "session" // and what SessionRule says, as long as the session is used
	AllowPattern Choice = "pattern" // and what Rule says, in this conversation until it is revoked
	Deny         Choice = "deny"    // with a Reason, if there is one
	Answer       Choice = "answer"  // with Answers
)

// Verdict is a person's choice, and what goes with it.
type Verdict struct {
	Choice  Choice
	Reason  string
	Answers [][]string
}
