package orchestrator

import (
	"time"

	"ductor/cli"
)

// AskID is ours: random, and known only to those who see the ask.
type AskID string

// AskState is where an Ask stands. Only an open one changes, and once.
type AskState string

// The states of an Ask.
const (
	AskOpen      AskState = "open"
	AskAllowed   AskState = "allowed"
	AskDenied    AskState = "denied"
	AskAnswered  AskState = "answered"  // a question was answered
	AskWithdrawn AskState = "withdrawn" // the agent no longer waits: it gave up, or its turn ended
	AskExpired   AskState = "expired"   // no user answered in time, which denied it
)

// Ask is one thing that an agent waits for people to decide. Approval or Questions is set, never both.
//
// Identical requests of one turn that are open at the same time are one Ask, whose decision answers them all.
type Ask struct {
	ID           AskID
	Nonce        string // random; a decision must bring it along
	Turn         cli.TurnID
	Session      SessionID
	Conversation ConversationID
	Agent        cli.Agent
	Requests     []cli.AskID // the agent's own ids of it, in the order they came
	Dir          string      // the working directory of the turn

	Approval  *cli.ApprovalAsked
	Questions []cli.Question

	// SessionRule and Rule are the exact rules that AllowSession and AllowPattern would make, as people read
	// them; empty where there is none to offer.
	SessionRule string
	Rule        string

	Approvers []PersonID // the only users who may decide
	Asked     time.Time
	Expires   time.Time

	State   AskState
	By      PersonID   // the user who decided; 0 where none did, also where a rule decided
	Ruled   string     // the rule that decided, or that the decision made; may be empty
	Reason  string     // one sentence; may be empty
	Answers [][]string // chosen labels or own words, for each question; not kept for a question that has a Secret
	Decided time.Time  // zero while open

	// Message is the chat's message that shows the ask, and Sent what is known of it. They are what
	// Approvals.AskShown was told, Pending and 0 before.
	Message int
	Sent    SendState
}

// Same is how many identical requests the ask stands for.
func (a Ask) Same() int { return len(a.Requests) }

// RuledByMode stands in Ask.Ruled where no rule but the permission mode let an edit through.
const RuledByMode = string(cli.AcceptEdits)

// Choice is what a person does with an Ask.
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
