package updates

import (
	"context"
	"errors"
	"time"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Handler implements the commands and buttons of the bot. When a method has handled an update, it also marks the update
// as handled.
type Handler interface {
	// Command returns the command with the given name. If there is no such command, it returns false, and a command
	// that answers with an error message.
	Command(name string) (CommandSpec, bool)
	// Press handles a button that a user pressed.
	Press(ctx context.Context, p Press)
	// NewSession ends the session of the conversation, so that the message starts a new one.
	NewSession(ctx context.Context, in *Message) error
	// Stop stops everything that runs in a conversation.
	Stop(ctx context.Context, a Abort)
	// Reply is called for a message that is not a command, before it becomes a prompt. Reply handles the message if the
	// message is an answer, for example to an agent's question. It returns false if the message is a prompt.
	Reply(ctx context.Context, in *Message) bool
	// Named returns the model settings for a name that a user wrote at the start of a prompt, such as "fast" in "@fast
	// explain this". It returns false if no model has that name.
	Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool)
	// Heard is called for prompts that were sent as speech. If the sender must confirm the transcript first, Heard asks
	// for the confirmation and returns true.
	Heard(ctx context.Context, in *Message, p orchestrator.Prompt, w orchestrator.Wants) bool
	// Subject describes the bot's message to which the user's message replies. If Subject returns the zero value, the
	// prompt quotes the bot's message.
	Subject(ctx context.Context, in *Message) orchestrator.Subject
	// Edited is called if a user edits a prompt that has left the queue. first is the ID of the prompt's first message,
	// and text is the new text of the prompt, without the name of a model. named is the model that the new text names,
	// or nil. The user may send prompts. Edited returns false if it ignores the edit.
	Edited(ctx context.Context, in *Message, first int, text string, named *orchestrator.Wants) bool
	// EditedToCommand is called if a user edits a prompt and the new text is a command. The command does not run. first
	// is the ID of the prompt's first message. EditedToCommand returns false if it ignores the edit.
	EditedToCommand(ctx context.Context, in *Message, first int) bool
	// EditedToModel is called if a user edits a prompt and the new text starts with the name of a model. It returns
	// false if the prompt uses this model anyway, or if the prompt neither waits nor runs.
	EditedToModel(ctx context.Context, in *Message, first int, to orchestrator.Wants) bool
	// Moved transfers the conversations of a group to the group's new chat ID.
	Moved(ctx context.Context, from, to int64) error
}

// Turns starts turns. A turn is one prompt together with the agent's work on it.
type Turns interface {
	// Submit stores a prompt as a turn and marks its updates as handled, in one transaction. The settings in w take
	// precedence over the settings of the conversation.
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	// EditQueued changes the text of the queued turn that was created by the given message. It returns false if no such
	// turn is queued.
	EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error)
	// AwaitAborts prevents queued turns of a conversation from starting until its aborts are handled. It must not
	// block.
	AwaitAborts(aborts orchestrator.PendingAborts)
	// Runs reports whether a turn of the conversation is running. It must not block.
	Runs(id orchestrator.ConversationID) bool
	// Waits reports whether a turn of the conversation waits to run.
	Waits(id orchestrator.ConversationID) bool
}

// Listener converts speech to text.
type Listener interface {
	Transcribe(ctx context.Context, file string) (string, error)
}

// ErrNothingHeard is returned by Listener.Transcribe if the recording contains no words.
var ErrNothingHeard = errors.New("nothing was said")

// Feedback sends small hints that users can do without. The hints are not stored, so they may get lost. No method
// blocks.
type Feedback interface {
	// React adds an emoji reaction to a message after a delay. The reaction is dropped if the bot sends something else
	// to the chat during the delay.
	React(id orchestrator.ConversationID, message int, emoji string, delay time.Duration)
	// Say sends a text.
	Say(id orchestrator.ConversationID, text string)
	// Tidy deletes a message that users no longer need, if the bot has the right to do so.
	Tidy(chat int64, message int)
}

// Press describes a button that a permitted user pressed.
type Press struct {
	By      orchestrator.Press
	Query   string // ID for the Bot API method answerCallbackQuery
	Data    string
	Message int
	// Editable is Message if the handler of the button may edit the message. Otherwise it is 0.
	Editable int
	// Buttons contains all buttons of the message. It is nil if Telegram reports none. This also happens for messages
	// that the bot cannot read, such as old ones.
	Buttons tgapi.Keyboard
	Name    string // name of the user
}

// Pressed returns the message with the button.
func (p Press) Pressed() tgapi.Pressed { return tgapi.Pressed{Message: p.Message, Buttons: p.Buttons} }

// Request is a command together with the message that contains it.
type Request struct {
	Command
	In     *Message
	File   FileFunc
	Others []FileFunc // the other files, if the command is the caption of an album
}

// FileFunc returns the file that belongs to a command. The file is in the command's message, or in the message to which
// the command replies. The name contains no directories. FileFunc returns ErrNoFile if neither message has a file.
type FileFunc func(ctx context.Context) (name string, content []byte, err error)

// CommandFunc executes a command and marks its update as handled.
type CommandFunc func(ctx context.Context, r Request)
