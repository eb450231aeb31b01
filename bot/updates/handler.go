package updates

import (
	"context"
	"errors"
	"time"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Handler does what updates ask for. It finishes the updates of what it takes.
type Handler interface {
	// Command returns the command of a name. For an unknown name it returns a command that answers so, and false.
	Command(name string) (CommandSpec, bool)
	// Press answers a pressed button.
	Press(ctx context.Context, p Press)
	// Stop ends what runs in a conversation.
	Stop(ctx context.Context, a Abort)
	// Reply takes a message that is not a prompt, such as the answer to a question of an agent; false for a prompt.
	Reply(ctx context.Context, in *Message) bool
	// Named is what a name before a prompt wants, such as the "fast" of "@fast explain this"; false if it is text.
	Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool)
	// Heard takes a prompt that was spoken and that its sender is to confirm; false for one that is submitted at once.
	Heard(ctx context.Context, in *Message, p orchestrator.Prompt) bool
	// Subject says what a message of ours shows that in replies to.
	Subject(ctx context.Context, in *Message) orchestrator.Subject
	// Edited takes an edit of a prompt that no longer waits, by its message and its new text; false if nothing comes of it.
	Edited(ctx context.Context, in *Message, message int, text string) bool
	// Moved has all of a group follow it to its new id.
	Moved(ctx context.Context, from, to int64) error
}

// Turns makes turns of prompts.
type Turns interface {
	// Submit stores a prompt as a turn and marks its updates handled, both or neither. w says what it wants otherwise than the
	// conversation chose.
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	// EditQueued changes the text of the queued turn that a message asked for; false if there is none.
	EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error)
	// Runs says whether a turn of the conversation runs. It waits for nothing.
	Runs(id orchestrator.ConversationID) bool
}

// Listener turns speech into text. ErrNothingHeard if there is none in it.
type Listener interface {
	Transcribe(ctx context.Context, file string) (string, error)
}

// ErrNothingHeard says that there are no words in speech.
var ErrNothingHeard = errors.New("nothing was said")

// Signs shows what a user may miss. No method waits.
type Signs interface {
	// React puts an emoji on a message after a delay, unless the chat shows something else before.
	React(id orchestrator.ConversationID, message int, emoji string, delay time.Duration)
	// Say sends a text that cannot be stored before.
	Say(id orchestrator.ConversationID, text string)
	// Tidy deletes a message of which no user needs to know, if the bot may.
	Tidy(chat int64, message int)
}

// Press is a pressed button, by a user who may press here.
type Press struct {
	By      orchestrator.Press
	Query   string // what answerCallbackQuery wants
	Data    string
	Message int
	Buttons tgapi.Keyboard // below the message; nil for one that Telegram no longer shows to bots
	Name    string         // of the user
}

// Request is a command and the message it came in.
type Request struct {
	Command
	In   *Message
	File FileFunc
}

// FileFunc reads the file that a command comes with, or else that of the message that it answers to, and gives it a name of
// one path element. ErrNoFile if there is none.
type FileFunc func(ctx context.Context) (name string, content []byte, err error)

// CommandFunc does a command and finishes its update.
type CommandFunc func(ctx context.Context, r Request)
