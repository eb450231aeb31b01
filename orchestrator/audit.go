package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// AuditKind is the type of an audited event.
type AuditKind string

// The audited events.
const (
	AuditAllowed   AuditKind = "allowed"
	AuditDenied    AuditKind = "denied"
	AuditAnswered  AuditKind = "answered"
	AuditExpired   AuditKind = "expired"
	AuditWithdrawn AuditKind = "withdrawn"
	AuditChanged   AuditKind = "changed"   // the agent changed a call after a user had allowed it, so nothing was sent
	AuditRuled     AuditKind = "ruled"     // a rule allowed a request without asking a user
	AuditAccepted  AuditKind = "accepted"  // the permission mode allowed an edit without asking a user
	AuditRan       AuditKind = "ran"       // a tool ran without asking for permission
	AuditCalled    AuditKind = "called"    // an agent called a tool of ductor's
	AuditRule      AuditKind = "rule"      // a user created a rule
	AuditRevoked   AuditKind = "revoked"   // a user revoked a rule
	AuditMode      AuditKind = "mode"      // the permission mode of a conversation changed
	AuditDirectory AuditKind = "directory" // a user chose the working directory of a conversation
	AuditJob       AuditKind = "job"       // a user added, changed, paused, resumed, ran or deleted a job
	AuditUser      AuditKind = "user"      // an owner invited, changed or removed a user, or a user joined
)

// AuditElsewhere is the Reason of an AuditMode entry if a mode ended because a turn ran in another environment.
const AuditElsewhere = "elsewhere"

// AuditEntry is one audited event. Fields that do not apply are empty.
type AuditEntry struct {
	ID           int64 // ascends in the order of events
	At           time.Time
	What         AuditKind
	Conversation ConversationID
	Turn         cli.TurnID
	Approval     ApprovalID
	Call         cli.ToolID // tool call of AuditRan; the store keeps one entry for each call of a turn
	Agent        cli.Agent
	Tool         string // empty for questions
	Title        string // one line: the command, the path, the first question, the mode, the directory, the job
	Choice       Choice // the user's choice
	By           PersonID
	// Rule is the rule that decided, or that was created or revoked. For AuditAccepted and AuditRan it is the
	// permission mode.
	Rule   string
	Reason string
	Same   int // number of identical requests that the decision answered
}

// Spent is the usage of one turn, or of one question that was asked outside of turns.
type Spent struct {
	ID           string // ID of the turn or the question; the store counts each ID once
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

// UsageGroup selects how usage is grouped.
type UsageGroup string

// The groups.
const (
	UsageByDay          UsageGroup = "day"
	UsageByAgent        UsageGroup = "agent"
	UsageByModel        UsageGroup = "model"
	UsageByConversation UsageGroup = "conversation"
	UsageByPerson       UsageGroup = "user"
	// UsageByAccount groups turns by agent and account, as cli.Account.Of names it. All usage without a stored turn has
	// the name "".
	UsageByAccount UsageGroup = "account"
)

// UsageGroups lists the groups that users can choose.
func UsageGroups() []UsageGroup {
	return []UsageGroup{UsageByDay, UsageByAgent, UsageByModel, UsageByConversation, UsageByPerson}
}

// UsageRow is a line of a usage summary.
type UsageRow struct {
	Name    string // of the group: a day as 2006-01-02, an agent, a model, a conversation's key, or a user's number
	Turns   int
	Tokens  int64
	CostUSD float64
	Took    time.Duration
}

// UsageQuery requests a usage summary.
type UsageQuery struct {
	Since time.Time
	By    UsageGroup
	In    ConversationID // zero for all conversations
}

// BudgetScope names the scope of a budget: everything, "user 7" or "job backup".
type BudgetScope string

// LimitStore stores the plan limits that agents report. internal/store implements it.
type LimitStore interface {
	// MergeLimits merges reported limits into the stored limits of an account, and returns the result; see
	// cli.AccountLimits.
	MergeLimits(ctx context.Context, of cli.AccountLimits, now time.Time) (cli.AccountLimits, error)
	// PlanLimits lists the last limits of all accounts, sorted by agent and account.
	PlanLimits(ctx context.Context) ([]cli.AccountLimits, error)
}

// SpendingStore stores usage. internal/store implements it. Store.FinishTurn counts a turn in its own transaction.
type SpendingStore interface {
	// CountSpent counts usage outside of turns. A second call with the same ID changes nothing.
	CountSpent(ctx context.Context, s Spent) error
	// CostSince returns the cost since a time in US dollars. It counts only the turns of person or job if that is set,
	// and everything otherwise.
	CostSince(ctx context.Context, since time.Time, person PersonID, job JobID) (float64, error)
	// Usage returns one row for each group of q. Days are sorted by date. Other groups are sorted by cost and then
	// tokens, highest first.
	Usage(ctx context.Context, q UsageQuery) ([]UsageRow, error)
	// WarnBudget records that ductor warned about a budget in a period. It returns false if ductor did so before.
	WarnBudget(ctx context.Context, period string, of BudgetScope) (bool, error)
	// LiftBudgets lifts all budgets for a day, formatted as 2006-01-02.
	LiftBudgets(ctx context.Context, day string, by PersonID, at time.Time) error
	// BudgetsLifted reports whether the budgets are lifted for a day.
	BudgetsLifted(ctx context.Context, day string) (bool, error)
}
