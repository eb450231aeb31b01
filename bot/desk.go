package bot

import (
	"context"

	"ductor/bot/agent"
	"ductor/bot/display"
	"ductor/bot/menu"
	"ductor/cli"
	"ductor/orchestrator"
)

// Desk is the part of the domain that the chat needs. *conversation.Engine implements it.
//
// Methods return quickly: none waits for an agent to start or to end. Safe for concurrent use.
type Desk interface {
	orchestrator.Approvals
	menu.Service
	agent.Service
	display.Service
	agent.LoginService

	// Steer adds a waiting prompt to the running turn. The prompt then gets no turn of its own. Steer returns:
	//   - ErrNotWaiting if the prompt is not in the queue, or no turn is running
	//   - ErrCannotSteer if the agent accepts no prompt now; the prompt then becomes the first in the queue
	//   - ErrSteerUnknown if ductor does not know whether the agent got the prompt; the prompt is then shown as interrupted
	Steer(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error
	// Interrupt stops the running turn and runs the waiting turn next. The other turns stay in the queue. It returns
	// ErrNotWaiting if the turn no longer waits.
	Interrupt(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error
	// StartOver stops the running turn of a message. Then it runs the prompt of that turn and the prompt of a waiting
	// turn as one prompt. It returns ErrNotWaiting if the first turn is not running or the second no longer waits.
	StartOver(ctx context.Context, message int, waiting cli.TurnID, by orchestrator.Press) error
	// Restart stops a running turn and then runs its prompt with another text. It returns ErrNoTurn if the turn is
	// not running, ErrElsewhere if it runs in another conversation, and ErrRepeated on a second press.
	Restart(ctx context.Context, running cli.TurnID, text string, by orchestrator.Press) (orchestrator.Receipt, error)

	// Subject describes the message that a user replies to, if it belongs to a turn.
	Subject(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (orchestrator.Subject, error)
	// Submit stores a prompt as a turn and marks its updates as handled, both or neither. w overrides the choices of
	// the conversation.
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	// Stop stops the running turn of a conversation and empties its queue. For a member, it stops only the member's
	// own turns. It never stops turns that started after the press.
	//
	// Stop first ends the running turn, without waiting for anything. It calls told with that turn, or with nil if
	// none was running. Then it calls answer, and stores the stopped turns and the result of answer in one commit.
	//
	// If the commit fails, Stop returns an error, and ductor stores the stopped turns later, without the notices of
	// answer. If ductor dies before that, the next process handles the updates again.
	Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
		answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error)
	// StopTurn stops one running turn and nothing else. It returns ErrNoTurn if the turn is not running, ErrElsewhere
	// if it runs in another conversation, and ErrNotAllowed if a member stops a turn of another user.
	StopTurn(ctx context.Context, running cli.TurnID, by orchestrator.Press) error
	// Stopping returns the turn of a conversation that the previous process was stopping, or nil.
	Stopping(id orchestrator.ConversationID) *orchestrator.Stopping
	// Runs reports whether a turn of the conversation is running. It does not wait.
	Runs(id orchestrator.ConversationID) bool
	// CancelQueued removes a turn from the queue. It returns false if the turn has left the queue, and ErrNotAllowed
	// if a member cancels a turn of another user.
	CancelQueued(ctx context.Context, turn cli.TurnID, by orchestrator.Press) (bool, error)
	// EditQueued changes the text of the queued turn of a message. It returns false if there is none.
	EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error)

	// MoveChat moves everything of a group to its new id.
	MoveChat(ctx context.Context, from, to int64) error

	// New ends the current session. The next prompt starts a new session. A running turn continues in the old
	// session. ductor does not send the parts of an answer that the chat does not show yet.
	New(ctx context.Context, id orchestrator.ConversationID) error

	// Choose carries out a user's choice after a turn that did not end well. For choices that run the prompt again,
	// only the first press counts; later ones return ErrRepeated. Choose returns ErrBadChoice for a choice that was
	// not offered. It may also return ErrElsewhere and ErrStillOpen. ActionDrop cancels the next retry of a running
	// turn, and deletes the job that ActionLater created.
	Choose(ctx context.Context, turn cli.TurnID, what orchestrator.Action,
		by orchestrator.Press) (orchestrator.Receipt, error)
	// ShowAgain sends the outcome of an ended turn as new messages.
	ShowAgain(ctx context.Context, turn cli.TurnID, by orchestrator.Press) error

	// SetDir sets the working directory, starts a new session there, and returns the absolute path. path is absolute
	// or relative to the current directory. SetDir returns ErrOutsideRoot for a directory outside of the configured
	// roots, and ErrNotADir if path is not a directory.
	SetDir(ctx context.Context, id orchestrator.ConversationID, path string, by orchestrator.PersonID) (string, error)
}
