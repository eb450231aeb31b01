package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// AuditKind is the kind of an event in the audit log.
type AuditKind string

// AuditKind values.
const (
	AuditAllowed   AuditKind = "allowed"
	AuditDenied    AuditKind = "denied"
	AuditAnswered  AuditKind = "answered"
	AuditExpired   AuditKind = "expired"
	AuditWithdrawn AuditKind = "withdrawn"
	// AuditChanged: a user allowed a tool call, but the agent then changed the tool call. So ductor did not pass the
	// permission to the agent.
	AuditChanged   AuditKind = "changed"
	AuditRuled     AuditKind = "ruled"     // a rule allowed a request without asking a user
	AuditAccepted  AuditKind = "accepted"  // the permission mode allowed an edit without asking a user
	AuditRan       AuditKind = "ran"       // a tool ran without asking for permission
	AuditCalled    AuditKind = "called"    // an agent called one of ductor's own tools
	AuditRule      AuditKind = "rule"      // a user created a rule
	AuditRevoked   AuditKind = "revoked"   // a user revoked a rule
	AuditMode      AuditKind = "mode"      // the permission mode of a conversation changed
	AuditDirectory AuditKind = "directory" // a user chose the working directory of a conversation
	// AuditJob: a user added, changed, paused, resumed, ran or deleted a job. ductor itself pauses jobs of users who may
	// not have jobs any more.
	AuditJob  AuditKind = "job"
	AuditUser AuditKind = "user" // an owner invited, changed or removed a user, or a user joined
)

// AuditElsewhere is the Reason of an AuditMode entry if ductor reset the permission mode of a conversation. ductor does
// this if a user chose the mode for one environment, but a turn runs in another.
const AuditElsewhere = "elsewhere"

// AuditEntry is one event in the audit log. Fields that do not apply are empty.
type AuditEntry struct {
	ID           int64 // later events have higher IDs
	At           time.Time
	What         AuditKind
	Conversation ConversationID
	Turn         cli.TurnID
	Approval     ApprovalID
	Call         cli.ToolID // the tool call, for AuditRan; the store contains only one entry for each tool call
	Agent        cli.Agent
	Tool         string // empty for questions
	// Title is one line that describes the event. It contains the command, the path, the first question, the mode, the
	// directory or the job.
	Title  string
	Choice Choice
	By     PersonID
	// Rule is the rule that decided the request, or the rule that a user created or revoked. For AuditAccepted and
	// AuditRan, it contains the permission mode.
	Rule   string
	Reason string
	Same   int // number of identical requests that were decided together
}

// ModeAudit returns an entry about a user's choice of a permission mode. The title is the mode, and how long it lasts.
func ModeAudit(title string, by PersonID) AuditEntry {
	return AuditEntry{What: AuditMode, Title: title, By: by}
}

// ToolsAudit returns an entry about a user's choice of tools.
func ToolsAudit(list cli.ToolList, by PersonID) AuditEntry {
	title := "tools"
	for _, name := range list.Only {
		title += " +" + name
	}
	for _, name := range list.Denied {
		title += " -" + name
	}
	return ModeAudit(title, by)
}

// Spent is the tokens and the cost of one turn, or of one question to a model outside of turns.
type Spent struct {
	ID           string // ID of the turn or the question; the store counts each ID once
	At           time.Time
	Conversation ConversationID
	Person       PersonID // the user who asked; 0 for none
	Job          JobID    // the job of the turn; empty for none
	Agent        cli.Agent
	Model        cli.ModelID
	Usage        cli.Usage
	CostUSD      float64
	Took         time.Duration
}

// UsageGroup selects how a usage summary is grouped: by day, by agent, by user and so on.
type UsageGroup string

// UsageGroup values.
const (
	UsageByDay          UsageGroup = "day"
	UsageByAgent        UsageGroup = "agent"
	UsageByModel        UsageGroup = "model"
	UsageByConversation UsageGroup = "conversation"
	UsageByPerson       UsageGroup = "user"
	// UsageByAccount groups turns by agent and account. Questions outside of turns are in the group with the name "".
	UsageByAccount UsageGroup = "account"
)

// UsageGroups lists the groups that users can choose.
func UsageGroups() []UsageGroup {
	return []UsageGroup{UsageByDay, UsageByAgent, UsageByModel, UsageByConversation, UsageByPerson}
}

// UsageRow is a line of a usage summary.
type UsageRow struct {
	// Name is the name of the group: a day as 2006-01-02, an agent, a model, a conversation's key, or a user's ID.
	Name    string
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

// BudgetScope selects the costs that a budget limits: "all" for all costs, "user 7" for the costs of a user, and
// "job backup" for the costs of a job.
type BudgetScope string

// LimitStore stores the plan limits that agents report. internal/store implements it.
type LimitStore interface {
	// MergeLimits merges newly reported limits into the stored limits of an account, and returns the result.
	MergeLimits(ctx context.Context, of cli.AccountLimits, now time.Time) (cli.AccountLimits, error)
	// PlanLimits lists the latest limits of all accounts, sorted by agent and account.
	PlanLimits(ctx context.Context) ([]cli.AccountLimits, error)
}

// SpendingStore stores usage. internal/store implements it. The usage of turns is stored by Store.FinishTurn.
type SpendingStore interface {
	// CountSpent stores the usage of something other than a turn. A second call with the same ID changes nothing.
	CountSpent(ctx context.Context, s Spent) error
	// CostSince returns the cost since a time in US dollars. If a user or a job is given, it counts only the turns of
	// that user or job.
	CostSince(ctx context.Context, since time.Time, person PersonID, job JobID) (float64, error)
	// Usage returns one row for each group of q. Days are sorted by date. Other groups are sorted by cost and then
	// tokens, highest first.
	Usage(ctx context.Context, q UsageQuery) ([]UsageRow, error)
	// WarnBudget records that ductor warned about a budget in a period. It returns false if this warning was recorded
	// before.
	WarnBudget(ctx context.Context, period string, of BudgetScope) (bool, error)
	// LiftBudgets removes all budgets for one day, formatted as 2006-01-02.
	LiftBudgets(ctx context.Context, day string, by PersonID, at time.Time) error
	// BudgetsLifted reports whether LiftBudgets was called for a day.
	BudgetsLifted(ctx context.Context, day string) (bool, error)
}
