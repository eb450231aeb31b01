package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// ApprovalStore keeps what agents asked and what was decided. It is a part of Store, under the same rules.
type ApprovalStore interface {
	// OpenApproval stores an approval with one native id, and returns the one that now stands for that id. When the id
	// is known in the turn, that is the approval it was stored with, as it stands: nothing else is stored. When the
	// turn has an open approval of the same digest, the id joins it, unless a is decided. An approval that is stored
	// decided is audited as AuditRuled, or AuditAccepted if RuledByMode decided, and outlives a power failure; an open one may
	// be lost by it, with the agent that waits.
	OpenApproval(ctx context.Context, a Approval, digest string) (Approval, error)
	// FindApproval returns ErrNoApproval for an id that is not there.
	FindApproval(ctx context.Context, id ApprovalID) (Approval, error)
	// FindSameApproval finds the newest approval of a session with a digest; ErrNoApproval for none.
	FindSameApproval(ctx context.Context, session SessionID, digest string) (Approval, error)
	// OpenApprovals lists the open approvals of all turns, oldest first.
	OpenApprovals(ctx context.Context) ([]Approval, error)
	// ApprovalsShownOpen lists approvals that are over, and of which a chat still shows that they are open, oldest first.
	ApprovalsShownOpen(ctx context.Context) ([]Approval, error)
	// DecideApproval closes an open approval and audits it, stores its rule and marks its updates handled, all or none;
	// false, and nothing stored, if it is not open, or if it would be allowed or answered and its turn does
	// not run or was aborted. One of a terminal has no turn. The approval is as it stands after. Of d.Secret nothing is left in any file of the store.
	DecideApproval(ctx context.Context, d ApprovalDecision) (Approval, bool, error)
	// WithdrawRequest takes one request out of an open approval, and closes it when that was the last; false if that
	// changed nothing.
	WithdrawRequest(ctx context.Context, turn cli.TurnID, request cli.ApprovalID, at time.Time) (Approval, bool, error)
	// WithdrawApproval closes an approval that its agent no longer waits for, also one that was decided and not delivered.
	WithdrawApproval(ctx context.Context, id ApprovalID, at time.Time) (Approval, error)
	// WithdrawTurn closes the open approvals of a turn and returns them.
	WithdrawTurn(ctx context.Context, turn cli.TurnID, at time.Time) ([]Approval, error)

	// RulesOf lists a conversation's rules, those of all its sessions too, oldest first.
	RulesOf(ctx context.Context, in ConversationID) ([]Rule, error)
	// RevokeRule deletes a rule of a conversation and audits that; false if there is no such rule.
	RevokeRule(ctx context.Context, id RuleID, in ConversationID, by PersonID, at time.Time) (bool, error)
	// RecordAudit records what happened. An entry with a Call is passed over if the turn
	// has one of that call, or asked for it.
	// A killed process loses none of it; a power failure may, until the next method that changes something returns.
	RecordAudit(ctx context.Context, entries ...AuditEntry) error
	// AuditSince lists what happened since a moment, newest first.
	AuditSince(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}

// ApprovalDecision is how an open approval ends, and what is stored with that.
type ApprovalDecision struct {
	Approval ApprovalID
	Decision
	Choice  Choice
	Rule    *Rule // to make
	Updates []int64
	Secret  bool // the updates hold an answer that is not to be kept anywhere
}

// QueueStore changes the order of queues and merges turns. It is a part of Store, under the same rules.
type QueueStore interface {
	// PromoteTurn makes a queued turn the first of those that wait in its conversation; false if it is no
	// longer queued.
	PromoteTurn(ctx context.Context, id cli.TurnID) (bool, error)
	// SteerTurn moves a queued turn to steered into a running one, not delivered: until MarkDelivered it is
	// among OpenTurns. It takes over session, agent and model of that. False if it is no longer queued or the
	// other does not run.
	SteerTurn(ctx context.Context, id, into cli.TurnID, at time.Time) (bool, error)
	// UnsteerTurn moves a steered turn back to queued, as the first that waits; false if it is not that.
	UnsteerTurn(ctx context.Context, id cli.TurnID) (bool, error)
}
