package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// Asks shows people what agents ask. Package bot implements it.
type Asks interface {
	// ShowAsk shows an ask, or how it stands now: it is called when the ask is new, when more identical
	// requests joined it, when it is open again after a restart, and once more when it is decided. It does not
	// wait for the network. Calls for one ask come one after the other. What is shown goes to ask.Conversation;
	// AskShown is to be told of the message.
	ShowAsk(ask Ask)
}

// Approvals is what users do with asks and rules. *approval.Service implements it.
type Approvals interface {
	// Decide decides an ask, once. nonce is Ask.Nonce. The Ask that is returned is as it stands now; it is
	// zero for ErrNoAsk, ErrElsewhere and ErrNotApprover. Errors, in the order they are looked for: ErrNoAsk
	// (unknown or forged), ErrElsewhere, ErrNotApprover, ErrAskDecided, ErrAskExpired, ErrAskWithdrawn, and
	// ErrBadChoice for a choice that this ask does not have or answers that do not fit.
	// by.Updates are marked handled with the decision, and only then.
	Decide(ctx context.Context, id AskID, nonce string, by Press, v Verdict) (Ask, error)
	// Ask loads an ask for who may see it: it is of the conversation. ErrNoAsk, ErrElsewhere.
	Ask(ctx context.Context, id AskID, in ConversationID) (Ask, error)
	// AskAt finds the ask that a message of the conversation shows. ErrNoAsk.
	AskAt(ctx context.Context, in ConversationID, message int) (Ask, error)
	// AskShown records which message shows an ask. ErrNoAsk.
	AskShown(ctx context.Context, id AskID, state SendState, message int) error

	// Revoke takes a rule back. What it let through stays. ErrNoRule if the conversation has no such rule.
	Revoke(ctx context.Context, id RuleID, by Press) error
	// Audit lists what happened since a moment, newest first.
	Audit(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error)
}

// AskDesk is what users do with asks, rules and turns that run. *conversation.Engine implements it.
type AskDesk interface {
	Approvals

	// Permissions says what the agents of a conversation may do without asking.
	Permissions(ctx context.Context, in ConversationID) (Permissions, error)

	// SetBusy chooses what becomes of a prompt that comes while a turn runs. ErrBadChoice for no BusyMode.
	SetBusy(ctx context.Context, in ConversationID, mode BusyMode) error
	// Steer hands a waiting prompt to the turn that runs, as a part of it: it will have no turn of its own.
	// ErrNotWaiting if it no longer waits or nothing runs. ErrCannotSteer when the agent takes nothing now: it
	// waits on, as the first. ErrSteerUnknown when it is unknown whether it arrived: it is shown as interrupted.
	Steer(ctx context.Context, waiting cli.TurnID, by Press) error
	// Interrupt ends the turn that runs and runs the waiting one next; the rest of the queue stays.
	// ErrNotWaiting if it no longer waits.
	Interrupt(ctx context.Context, waiting cli.TurnID, by Press) error
	// Restart ends a turn that runs and runs its prompt with another text next. ErrNoTurn if it does not run,
	// ErrElsewhere, and ErrRepeated on a second press.
	Restart(ctx context.Context, running cli.TurnID, text string, by Press) (Receipt, error)
}
