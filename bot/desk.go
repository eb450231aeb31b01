package bot

import (
	"context"

	"ductor/bot/agent"
	"ductor/bot/display"
	"ductor/bot/menu"
	"ductor/cli"
	"ductor/orchestrator"
)

// Desk contains the operations of the orchestrator that the bot needs. *conversation.Engine implements it.
//
// No method waits until an agent has started or ended. A Desk must be safe for concurrent use.
type Desk interface {
	orchestrator.Approvals
	menu.Service
	agent.Service
	display.Service
	agent.LoginService

	// Steer adds a waiting prompt to the running turn, so that the agent reads the prompt during this turn. The prompt
	// then gets no turn of its own. Steer returns:
	//   - ErrNotWaiting if the prompt is not in the queue, or no turn is running
	//   - ErrCannotSteer if the prompt may not join the running turn (Turn.MayJoin)
	//   - ErrCannotSteer if the agent accepts no prompt now; the prompt then moves to the front of the queue
	//   - ErrSteerUnknown if it is unknown whether the agent got the prompt; the chat then shows the prompt as
	//     interrupted
	Steer(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error
	// Interrupt stops the running turn and then runs the given waiting turn. Other turns stay in the queue. It returns
	// ErrNotWaiting if the turn is not in the queue.
	Interrupt(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error
	// StartOver stops the running turn that was created by the given message. It then runs a single turn with the
	// prompts of the stopped turn and of the waiting turn. StartOver returns ErrNotWaiting if the given message has no
	// running turn, or if the waiting turn has left the queue.
	StartOver(ctx context.Context, message int, waiting cli.TurnID, by orchestrator.Press) error
	// Restart stops a running turn and then runs it again with a new text. It returns ErrNoTurn if the turn is not
	// running, ErrElsewhere if the turn belongs to another conversation, and ErrRepeated if the turn was already
	// restarted.
	Restart(ctx context.Context, running cli.TurnID, text string, by orchestrator.Press) (orchestrator.Receipt, error)

	// Subject returns information about a turn, because a user has replied to one of its messages. It returns the zero
	// Subject if ductor does not know the turn.
	Subject(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (orchestrator.Subject, error)
	// Submit stores a prompt as a turn and marks its updates as handled, in one transaction. The settings in w take
	// precedence over the settings of the conversation.
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	// Stop stops the running turn of a conversation and removes all turns from its queue. For a user with the role
	// member, Stop affects only the user's own turns. Turns that started after the user's message or button press
	// continue.
	//
	// Stop makes these steps:
	//   - It tells the agent to end.
	//   - It calls told with the running turn, or with nil if no turn is running.
	//   - It calls answer.
	//   - In one transaction, it stores that the turns have ended, and the result of answer.
	//
	// If the transaction fails, Stop returns an error. ductor later stores that the turns have ended, but drops the
	// result of answer. If ductor crashes before it has stored that the turns have ended, the next process handles the
	// user's updates again.
	Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
		answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error)
	// StopTurn stops only the given running turn. It returns ErrNoTurn if the turn is not running, ErrElsewhere if the
	// turn belongs to another conversation, and ErrNotAllowed if a member tries to stop the turn of another user.
	StopTurn(ctx context.Context, running cli.TurnID, by orchestrator.Press) error
	// Stopping returns the turn of the conversation that was being stopped when the previous process ended, or nil.
	Stopping(id orchestrator.ConversationID) *orchestrator.Stopping
	// AwaitAborts implements updates.Turns.
	AwaitAborts(aborts orchestrator.PendingAborts)
	// Runs reports whether a turn of the conversation is running. It returns at once.
	Runs(id orchestrator.ConversationID) bool
	// Waits reports whether a turn of the conversation waits to run.
	Waits(id orchestrator.ConversationID) bool
	// CancelQueued removes a turn from the queue. It returns false if the turn is not in the queue, and ErrNotAllowed
	// if a member tries to cancel the turn of another user.
	CancelQueued(ctx context.Context, turn cli.TurnID, by orchestrator.Press) (bool, error)
	// EditQueued changes the text of the queued turn that was created by the given message. It returns false if no such
	// turn is queued.
	EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error)

	// MoveChat transfers the conversations of a group to the group's new chat ID.
	MoveChat(ctx context.Context, from, to int64) error

	// New ends the current session, so that the next prompt starts a new one. A running turn continues in the old
	// session. New drops the unsent parts of older answers.
	New(ctx context.Context, id orchestrator.ConversationID) error

	// Choose performs an action that a user chose after a turn failed or was interrupted. A user can run the prompt
	// again only once: later actions of this kind return ErrRepeated. Choose returns ErrBadChoice if the action was not
	// offered, ErrElsewhere if the turn belongs to another conversation, and ErrStillOpen if the turn has not ended.
	//
	// ActionDrop cancels the next retry of a running turn, or deletes the job that ActionLater created. It returns
	// ErrRepeated if the prompt has run again. An action that runs the prompt now also deletes this job, or returns
	// ErrRepeated if the job has started.
	Choose(ctx context.Context, turn cli.TurnID, what orchestrator.Action,
		by orchestrator.Press) (orchestrator.Receipt, error)
	// ShowAgain sends the result of a turn again, as new messages.
	ShowAgain(ctx context.Context, turn cli.TurnID, by orchestrator.Press) error

	// SetDir sets the working directory. If the directory changes, the next turn starts a new session. path is absolute
	// or relative to the current directory. SetDir returns the absolute path. It returns ErrOutsideRoot if the
	// directory is not below one of the configured roots, and ErrNotADir if it is not a directory.
	SetDir(ctx context.Context, id orchestrator.ConversationID, path string, by orchestrator.PersonID) (string, error)
}
