package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// AuditKind is what happened.
type AuditKind string

// What is audited.
const (
	AuditAllowed   AuditKind = "allowed"
	AuditDenied    AuditKind = "denied"
	AuditAnswered  AuditKind = "answered"
	AuditExpired   AuditKind = "expired"
	AuditWithdrawn AuditKind = "withdrawn"
	AuditRuled     AuditKind = "ruled"     // a rule allowed it, no user was asked
	AuditAccepted  AuditKind = "accepted"  // the permission mode allowed an edit, no user was asked
	AuditRan       AuditKind = "ran"       // a tool ran that its agent did not ask for
	AuditCalled    AuditKind = "called"    // an agent called a tool of ductor
	AuditRule      AuditKind = "rule"      // a user made a rule
	AuditRevoked   AuditKind = "revoked"   // a user took a rule back
	AuditMode      AuditKind = "mode"      // the permission mode of a conversation changed
	AuditDirectory AuditKind = "directory" // a user chose the working directory of a conversation
	AuditJob       AuditKind = "job"       // a user added, changed, paused, resumed, ran or deleted a job
	AuditUser      AuditKind = "user"      // an owner invited, changed or removed a user, or a user joined
)

// AuditElsewhere is the reason of an AuditMode if the mode was granted in another environment than the one that a turn ran in.
const AuditElsewhere = "elsewhere"

// AuditEntry is one thing that happened: who, when, what. Fields that say nothing of it are empty.
type AuditEntry struct {
	ID           int64 // in the order things happened
	At           time.Time
	What         AuditKind
	Conversation ConversationID
	Turn         cli.TurnID
	Approval     ApprovalID
	Call         cli.ToolID // of AuditRan; stored once a turn
	Agent        cli.Agent
	Tool         string // empty for questions
	Title        string // one line: the command, the path, the first question, the mode, the directory, the job
	Choice       Choice // what a user chose
	By           PersonID
	Rule         string // that decided, was made or was revoked; the permission mode of AuditAccepted and AuditRan
	Reason       string
	Same         int // identical requests that it decided
}

// Spent is what one turn, or one question beside the turns, used.
type Spent struct {
	ID           string // of the turn or the question: it is counted once
	At           time.Time
	Conversation ConversationID
	Person       PersonID // 0 for none
	Job          JobID    // empty for none
	Agent        cli.Agent
	Model        cli.ModelID
	Usage        cli.Usage
	CostUSD      float64
	Took         time.Duration
}

// UsageGroup is by what usage is summed up.
type UsageGroup string

// The groups.
const (
	UsageByDay          UsageGroup = "day"
	UsageByAgent        UsageGroup = "agent"
	UsageByModel        UsageGroup = "model"
	UsageByConversation UsageGroup = "conversation"
	UsageByPerson       UsageGroup = "user"
)

// UsageGroups lists every group.
func UsageGroups() []UsageGroup {
	return []UsageGroup{UsageByDay, UsageByAgent, UsageByModel, UsageByConversation, UsageByPerson}
}

// UsageRow is a line of a summary.
type UsageRow struct {
	Name    string // of what it sums up: a day as 2006-01-02, an agent, a model, the key of a conversation, a user's number
	Turns   int
	Tokens  int64
	CostUSD float64
	Took    time.Duration
}

// UsageQuery asks for a summary.
type UsageQuery struct {
	Since time.Time
	By    UsageGroup
	In    ConversationID // zero: of all conversations
}

// BudgetScope is what a budget is of: everything, "user 7" or "job backup".
type BudgetScope string

// SpendingStore keeps what turns used. internal/store implements it. Store.FinishTurn counts a turn in its own transaction.
type SpendingStore interface {
	// CountSpent counts what was used beside turns; a second time of the same id changes nothing.
	CountSpent(ctx context.Context, s Spent) error
	// CostSince is what was spent since a moment, in US dollars: of all, of a user or of a job.
	CostSince(ctx context.Context, since time.Time, person PersonID, job JobID) (float64, error)
	// Usage sums up what was used. Days come in order, other groups by their cost and tokens, the highest first.
	Usage(ctx context.Context, q UsageQuery) ([]UsageRow, error)
	// WarnBudget records that a budget was warned of in a period; false if it was before.
	WarnBudget(ctx context.Context, period string, of BudgetScope) (bool, error)
	// LiftBudgets lifts all budgets for a day, which is written as 2006-01-02.
	LiftBudgets(ctx context.Context, day string, by PersonID, at time.Time) error
	// BudgetsLifted says whether they are lifted for a day.
	BudgetsLifted(ctx context.Context, day string) (bool, error)
}
