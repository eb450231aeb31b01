package updates

import (
	"context"
	"errors"
	"time"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Handler executes the requests of updates, and finishes the updates that it handles.
type Handler interface {
	// Command returns the command with a name. For an unknown name, it returns false and a command that reports the
	// error.
	Command(name string) (CommandSpec, bool)
	// Press handles a press of a button.
	Press(ctx context.Context, p Press)
	// Stop stops the running work of a conversation.
	Stop(ctx context.Context, a Abort)
	// Reply handles a message that is not a prompt, such as the answer to an agent's question. It returns false if
	// the message is a prompt.
	Reply(ctx context.Context, in *Message) bool
	// Named returns the choice for a name before a prompt, such as "fast" in "@fast explain this". It returns false
	// if the name is ordinary text.
	Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool)
	// Heard handles a spoken prompt that its sender must confirm. It returns false if the prompt needs no
	// confirmation.
	Heard(ctx context.Context, in *Message, p orchestrator.Prompt) bool
	// Subject describes the bot's message to which the message in replies. If it returns the zero Subject, the
	// receiver quotes the message.
	Subject(ctx context.Context, in *Message) orchestrator.Subject
	// Edited handles an edit of a prompt that is not in the queue. message identifies the prompt, and text is its new
	// text. Edited returns false if the edit has no effect.
	Edited(ctx context.Context, in *Message, message int, text string) bool
	// Moved moves everything of a group to its new id.
	Moved(ctx context.Context, from, to int64) error
}

// Turns creates turns from prompts.
type Turns interface {
	// Submit stores a prompt as a turn and marks its updates as handled, both or neither. w overrides the choices of
	// the conversation.
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	// EditQueued changes the text of the queued turn of a message. It returns false if there is none.
	EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error)
	// Runs reports whether a turn of the conversation is running. It does not wait.
	Runs(id orchestrator.ConversationID) bool
}

// Listener converts speech to text. It returns ErrNothingHeard if the speech contains no words.
type Listener interface {
	Transcribe(ctx context.Context, file string) (string, error)
}

// ErrNothingHeard means that speech contains no words.
var ErrNothingHeard = errors.New("nothing was said")

// Feedback shows minor feedback, which may get lost. Its methods do not wait.
type Feedback interface {
	// React puts an emoji on a message after a delay, unless the chat shows something else first.
	React(id orchestrator.ConversationID, message int, emoji string, delay time.Duration)
	// Say sends a text without storing it first.
	Say(id orchestrator.ConversationID, text string)
	// Tidy deletes a message that users no longer need, if the bot may.
	Tidy(chat int64, message int)
}

// Press is a press of a button by a permitted user.
type Press struct {
	By      orchestrator.Press
	Query   string // for answerCallbackQuery
	Data    string
	Message int
	Buttons tgapi.Keyboard // buttons of the message; nil if Telegram no longer provides them
	Name    string         // name of the user
}

// Request is a command with its message.
type Request struct {
	Command
	In   *Message
	File FileFunc
}

// FileFunc reads the file of a command's message, or of the message that it replies to. name is a single path element.
// It returns ErrNoFile if there is no file.
type FileFunc func(ctx context.Context) (name string, content []byte, err error)

// CommandFunc executes a command and finishes its update.
type CommandFunc func(ctx context.Context, r Request)
