package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// ApprovalStore stores approvals, decisions, rules and the audit. It is a part of Store, whose comment has the contract
// for all methods.
type ApprovalStore interface {
	// OpenApproval stores an agent's request for approval, and returns the stored approval. a.AgentIDs must contain
	// exactly one ID, the agent's ID of the request.
	//   - If the turn already has a request with this ID, OpenApproval changes nothing.
	//   - If an identical request of the turn is open, which has the same digest, OpenApproval only adds the ID to the
	//     stored approval. This does not apply to requests that a rule or mode has decided.
	//
	// For a request that a rule or mode has decided, OpenApproval also writes an audit entry: AuditAccepted if a.Ruled is
	// RuledByMode, otherwise AuditRuled.
	//
	// A decided approval survives a power failure. An open approval may be lost, but then the agent that needs the
	// decision has died, too.
	OpenApproval(ctx context.Context, a Approval, digest string) (Approval, error)
	// FindApproval returns an approval, or ErrNoApproval for an unknown ID.
	FindApproval(ctx context.Context, id ApprovalID) (Approval, error)
	// FindSameApproval returns the newest approval in a session that has this digest, or ErrNoApproval.
	FindSameApproval(ctx context.Context, session SessionID, digest string) (Approval, error)
	// LastProjectApproval returns the newest approval in which a user allowed the agent to use the settings of the
	// project in dir (see cli.ProjectTool), or ErrNoApproval.
	LastProjectApproval(ctx context.Context, in ConversationID, agent cli.Agent, dir string) (Approval, error)
	// OpenApprovals lists the open approvals of all turns, oldest first.
	OpenApprovals(ctx context.Context) ([]Approval, error)
	// ApprovalsShownOpen lists approvals that are closed, although the chat still shows them as open. The oldest is
	// first.
	ApprovalsShownOpen(ctx context.Context) ([]Approval, error)
	// DecideApproval closes an open approval and returns its new state. In one transaction, it stores the decision and
	// the new rule, writes an audit entry, and marks the updates as handled.
	//
	// DecideApproval returns false and stores nothing in these cases:
	//   - The approval is not open.
	//   - The decision allows the request or answers the questions, but the turn is not running or was aborted. This
	//     case does not apply to agents in a terminal, whose turns are not stored.
	//
	// If d.Secret is set, DecideApproval also erases the answer from all files of the store.
	DecideApproval(ctx context.Context, d ApprovalDecision) (Approval, bool, error)
	// WithdrawRequest removes one request from an open approval. If no request is left, it closes the approval. It
	// writes an audit entry of the given kind, AuditWithdrawn or AuditChanged. If the kind is AuditChanged, it also
	// closes an approval that a user has already allowed. It returns false if nothing changed.
	WithdrawRequest(ctx context.Context, turn cli.TurnID, request cli.ApprovalID, what AuditKind,
		at time.Time) (Approval, bool, error)
	// WithdrawApproval closes an approval whose agent no longer waits for it. It also closes an approval that was
	// decided, if the decision did not reach the agent.
	WithdrawApproval(ctx context.Context, id ApprovalID, at time.Time) (Approval, error)
	// WithdrawTurn closes the open approvals of a turn and returns them.
	WithdrawTurn(ctx context.Context, turn cli.TurnID, at time.Time) ([]Approval, error)

	// RulesOf lists the rules of a conversation and of all its sessions, oldest first.
	RulesOf(ctx context.Context, in ConversationID) ([]Rule, error)
	// RevokeRule deletes a rule of a conversation and writes an audit entry. It returns false if the conversation has
	// no such rule.
	RevokeRule(ctx context.Context, id RuleID, in ConversationID, by PersonID, at time.Time) (bool, error)
	// RecordAudit stores audit entries. It skips an entry for a tool call (AuditEntry.Call) if the turn already has an
	// entry or an approval request for that tool call.
	//
	// The entries survive if the process is killed. They survive a power failure only after a later change of the store
	// by another method.
	RecordAudit(ctx context.Context, entries ...AuditEntry) error
	// AuditSince lists the audit entries since a time, newest first.
	AuditSince(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}

// ApprovalDecision contains the data for DecideApproval: the decision, the new rule, and the Telegram updates that
// contain the decision.
type ApprovalDecision struct {
	Approval ApprovalID
	Decision
	Choice  Choice
	Rule    *Rule // rule to create; nil for none
	Updates []int64
	Secret  bool // the messages in Updates contain an answer that must not be stored
}

// QueueStore reorders queues and merges turns. It is a part of Store, whose comment has the contract for all methods.
type QueueStore interface {
	// PromoteTurn moves a queued turn to the front of its conversation's queue. It returns false if the turn is no
	// longer queued.
	PromoteTurn(ctx context.Context, id cli.TurnID) (bool, error)
	// SteerTurn changes a queued turn to the state TurnSteered, because ductor is about to send its prompt to the agent
	// of a running turn. SteerTurn sets the queued turn's session, agent and model to those of the running turn.
	// OpenTurns lists the queued turn until MarkSteered is called. SteerTurn returns false if the queued turn has left
	// the queue, or if the running turn has ended.
	SteerTurn(ctx context.Context, queued, running cli.TurnID, at time.Time) (bool, error)
	// MarkSteered records that the prompt of a steered turn has reached the agent of the running turn. It returns false
	// if the state of the steered turn has changed since SteerTurn.
	MarkSteered(ctx context.Context, steered, running cli.TurnID) (bool, error)
	// DoubtSteered undoes MarkSteered for the prompts that were sent to a running turn before it was interrupted. It
	// returns the turns of these prompts. It skips the turns in alreadyRead, whose prompts the agent has certainly
	// read.
	DoubtSteered(ctx context.Context, into cli.TurnID, alreadyRead ...cli.TurnID) ([]Turn, error)
	// UnsteerTurn moves a turn in the state TurnSteered back into the queue, right behind another turn. If the other turn
	// is not queued, or if its ID is empty, UnsteerTurn moves the turn to the front. It returns false if the turn is in
	// another state.
	UnsteerTurn(ctx context.Context, id, behind cli.TurnID) (bool, error)
}
