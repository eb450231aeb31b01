package orchestrator

import (
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
)

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
