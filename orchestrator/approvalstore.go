package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// ApprovalStore stores approvals, decisions, rules and the audit. It is a part of Store; see Store for the common
// contract.
type ApprovalStore interface {
	// OpenApproval stores an approval with one ID of the agent. It returns the approval that now contains that ID.
	//   - If the turn already has a request with the ID, OpenApproval stores nothing and returns its approval.
	//   - If a is open, and the turn has an open approval with the same digest, OpenApproval adds the ID to that
	//     approval.
	//
	// If a is already decided, OpenApproval audits it: as AuditAccepted if RuledByMode decided, otherwise as
	// AuditRuled. A decided approval survives a power failure. A power failure may lose an open approval, which does no
	// harm: the agent that waits for it dies, too.
	OpenApproval(ctx context.Context, a Approval, digest string) (Approval, error)
	// FindApproval returns ErrNoApproval for an unknown ID.
	FindApproval(ctx context.Context, id ApprovalID) (Approval, error)
	// FindSameApproval returns the newest approval of a session with a digest, or ErrNoApproval.
	FindSameApproval(ctx context.Context, session SessionID, digest string) (Approval, error)
	// OpenApprovals lists the open approvals of all turns, oldest first.
	OpenApprovals(ctx context.Context) ([]Approval, error)
	// ApprovalsShownOpen lists closed approvals that a chat still shows as open, oldest first.
	ApprovalsShownOpen(ctx context.Context) ([]Approval, error)
	// DecideApproval closes an open approval, audits the decision, stores its rule and marks its updates as handled, in
	// one transaction. It returns the approval's state afterwards.
	//
	// It returns false and stores nothing if the approval is not open. It does the same for a choice that allows or
	// answers, if the approval's turn is not running or was aborted. Approvals of a terminal have no turn and skip this
	// check.
	//
	// If d.Secret is set, no file of the store keeps the answer.
	DecideApproval(ctx context.Context, d ApprovalDecision) (Approval, bool, error)
	// WithdrawRequest removes one request from an open approval, and closes the approval if it has no other request. It
	// audits that as what, which is AuditWithdrawn or AuditChanged. With AuditChanged it also closes an allowed approval.
	// It returns false if nothing changed.
	WithdrawRequest(ctx context.Context, turn cli.TurnID, request cli.ApprovalID, what AuditKind,
		at time.Time) (Approval, bool, error)
	// WithdrawApproval closes an approval because its agent no longer waits. It also closes a decided approval whose
	// decision did not reach the agent.
	WithdrawApproval(ctx context.Context, id ApprovalID, at time.Time) (Approval, error)
	// WithdrawTurn closes the open approvals of a turn and returns them.
	WithdrawTurn(ctx context.Context, turn cli.TurnID, at time.Time) ([]Approval, error)

	// RulesOf lists the rules of a conversation and of all its sessions, oldest first.
	RulesOf(ctx context.Context, in ConversationID) ([]Rule, error)
	// RevokeRule deletes a rule of a conversation and audits that. It returns false if there is no such rule.
	RevokeRule(ctx context.Context, id RuleID, in ConversationID, by PersonID, at time.Time) (bool, error)
	// RecordAudit stores entries. It skips an entry with a Call if the turn already has an entry or an approval request
	// for that call. No entry is lost if the process is killed. A power failure may lose entries until a later method
	// that changes the store has returned.
	RecordAudit(ctx context.Context, entries ...AuditEntry) error
	// AuditSince lists the entries since a time, newest first.
	AuditSince(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}

// ApprovalDecision closes an open approval. It holds the decision, and the rule and updates that are stored in the same
// transaction.
type ApprovalDecision struct {
	Approval ApprovalID
	Decision
	Choice  Choice
	Rule    *Rule // rule to create; nil for none
	Updates []int64
	Secret  bool // Updates contain an answer that must not be stored
}

// QueueStore reorders queues and merges turns. It is a part of Store; see Store for the common contract.
type QueueStore interface {
	// PromoteTurn moves a queued turn to the front of its conversation's queue. It returns false if the turn is no
	// longer queued.
	PromoteTurn(ctx context.Context, id cli.TurnID) (bool, error)
	// SteerTurn marks a queued turn as steered: its prompt goes to the running turn into. The queued turn takes the
	// session, agent and model of that turn, and stays in OpenTurns until MarkDelivered. SteerTurn returns false if the
	// turn is no longer queued or into is not running.
	SteerTurn(ctx context.Context, id, into cli.TurnID, at time.Time) (bool, error)
	// UnsteerTurn moves a steered turn back to the front of the queue. It returns false if the turn is not steered.
	UnsteerTurn(ctx context.Context, id cli.TurnID) (bool, error)
}
