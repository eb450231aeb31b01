package orchestrator

import (
	"context"
	"time"
)

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
	// ErrBadChoice for a choice that this approval does not have or answers that do not fit.
	// by.Updates are marked handled with the decision, and only then.
	Decide(ctx context.Context, id ApprovalID, nonce string, by Press, v Verdict) (Approval, error)
	// Approval loads an approval of the conversation. ErrNoApproval, ErrElsewhere.
	Approval(ctx context.Context, id ApprovalID, in ConversationID) (Approval, error)

	// Revoke takes a rule back. What it let through stays. ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id RuleID, by Press) error
	// Audit lists what happened since a moment, newest first.
	Audit(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}
