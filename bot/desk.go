package bot

import (
	"context"

	"ductor/bot/agent"
	"ductor/bot/display"
	"ductor/bot/menu"
	"ductor/cli"
	"ductor/orchestrator"
)

// Desk is what the chat asks of the domain. *conversation.Engine implements it.
//
// Methods answer quickly: none waits for an agent to start or to end. Safe for concurrent use.
type Desk interface {
	orchestrator.Approvals
	menu.Service
	agent.Service
	display.Service

	// Steer hands a waiting prompt to the turn that runs, as a part of it: it will have no turn of its own.
	// ErrNotWaiting if it no longer waits or nothing runs. ErrCannotSteer when the agent takes nothing now: it
	// waits on, as the first. ErrSteerUnknown when it is unknown whether it arrived: it is shown as interrupted.
	Steer(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error
	// Interrupt ends the turn that runs and runs the waiting one next; the rest of the queue stays.
	// ErrNotWaiting if it no longer waits.
	Interrupt(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error
	// StartOver ends the turn of a message, and runs its prompt and that of a waiting turn next, as one. ErrNotWaiting if the one
	// does not run or the other no longer waits.
	StartOver(ctx context.Context, message int, waiting cli.TurnID, by orchestrator.Press) error
	// Restart ends a turn that runs and runs its prompt with another text next. ErrNoTurn if it does not run,
	// ErrElsewhere, and ErrRepeated on a second press.
	Restart(ctx context.Context, running cli.TurnID, text string, by orchestrator.Press) (orchestrator.Receipt, error)

	// Subject says what a message shows that a user replies to, if it is one of a turn.
	Subject(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (orchestrator.Subject, error)
	// Submit stores a prompt as a turn and marks its updates handled, both or neither.
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	// Stop ends the running turn of a conversation and empties its queue; for a member, as far as the turns are theirs.
	// First it tells the running turn to end and calls told, with nil if nothing ran; it waits for nothing before that. Then
	// it stores what it ended in one commit with what answer gives; that is not stored if Stop fails.
	Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
		answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error)
	// StopTurn ends one turn that runs, and nothing else. ErrNoTurn if it does not run, ErrElsewhere, and ErrNotAllowed for
	// a member and a turn of another user.
	StopTurn(ctx context.Context, running cli.TurnID, by orchestrator.Press) error
	// Stopping is the turn of a conversation that the previous process told to end; nil if there was none.
	Stopping(id orchestrator.ConversationID) *orchestrator.Stopping
	// Runs says whether a turn of the conversation runs. It waits for nothing.
	Runs(id orchestrator.ConversationID) bool
	// CancelQueued takes a turn out of the queue; false if it is no longer in it. ErrNotAllowed for a member and a turn
	// of another user.
	CancelQueued(ctx context.Context, turn cli.TurnID, by orchestrator.Press) (bool, error)
	// EditQueued changes the text of the queued turn that a message asked for; false if there is none.
	EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error)

	// MoveChat has all of a group follow it to its new id.
	MoveChat(ctx context.Context, from, to int64) error

	// New ends the current session: the next prompt begins another.
	New(ctx context.Context, id orchestrator.ConversationID) error

	// Choose does what a user chose after a turn that did not go well. ErrRepeated if its prompt ran or is to run once more
	// already, ErrBadChoice for what was not offered.
	Choose(ctx context.Context, turn cli.TurnID, what orchestrator.Action, by orchestrator.Press) (orchestrator.Receipt, error)
	// ShowAgain sends the outcome of an ended turn as new messages.
	ShowAgain(ctx context.Context, turn cli.TurnID, by orchestrator.Press) error

	// SetDir chooses the working directory and returns it as an absolute path. ErrOutsideRoot and
	// ErrNotADir say what is wrong with one that is refused.
	SetDir(ctx context.Context, id orchestrator.ConversationID, path string, by orchestrator.PersonID) (string, error)
}
