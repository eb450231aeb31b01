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
	AuditRuled     AuditKind = "ruled"   // a rule allowed it, nobody was asked
	AuditRevoked   AuditKind = "revoked" // a person took a rule back
)

// AuditEntry is one decision: who, when, what.
type AuditEntry struct {
	ID           int64 // in the order things happened
	At           time.Time
	What         AuditKind
	Conversation ConversationID
	Turn         cli.TurnID // empty for a rule that was revoked
	Ask          AskID      // empty for a rule that was revoked
	Agent        cli.Agent
	Tool         string // empty for questions
	Title        string // one line: the command, the path, the first question
	Choice       Choice // what a person chose; empty where nobody did
	By           PersonID
	Rule         string // that decided, was made or was revoked
	Reason       string
	Same         int // identical requests that it decided
}
