package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// Update is one incoming Telegram update in raw form; this package does not interpret it.
type Update struct {
	ID  int64
	Raw []byte // nil if only the ID is stored, because the update needs no handling
	// Received is when the update was first stored, to the millisecond; zero if it is not stored.
	Received time.Time
	// Crashes is how often ductor crashed before the update was handled.
	Crashes int
}

// MostCrashes is the number of crashes during an update or a turn after which ductor gives it up.
const MostCrashes = 2

// Handled is stored together with the effect of updates: it marks them handled and queues the notices that answer them.
type Handled struct {
	Updates []int64
	Notices []Message
}

// Journal stores incoming updates until they are handled, and outgoing messages until they are sent. internal/store
// implements it, package bot uses it. Data is durable when a method returns; exceptions are documented at the methods.
type Journal interface {
	Inbox
	CardStore
	MessageStore
	RateStore
	TopicStore
}

// Inbox stores updates until they are handled.
type Inbox interface {
	Disk

	// AppendUpdates stores updates before they are acknowledged, and returns the new ones that need handling. It skips
	// known IDs, unless so much time has passed that Telegram may have restarted its numbering. A killed process loses
	// no updates; a power failure may until Flush has returned.
	AppendUpdates(ctx context.Context, updates []Update) (fresh []Update, err error)
	// Flush returns once everything that was stored before it survives a power failure.
	Flush(ctx context.Context) error
	// PendingUpdates lists unhandled updates with IDs above after, in order of ID.
	PendingUpdates(ctx context.Context, after int64, limit int) ([]Update, error)
	// FinishUpdates marks updates handled and queues their notices, both or neither.
	FinishUpdates(ctx context.Context, ids []int64, notices ...Message) error
	// ForgetUpdates is FinishUpdates for updates that contain a secret. It also erases their text from all files of the
	// store.
	ForgetUpdates(ctx context.Context, ids []int64, notices ...Message) error
}

// CardStore stores the contents of cards by their turns, and the state of screens by keys that are not turn IDs.
type CardStore interface {
	// SaveCard stores the content of a turn's card in its final form.
	SaveCard(ctx context.Context, turn string, content []byte) error
	// LoadCard returns the content that SaveCard stored, or nil if there is none.
	LoadCard(ctx context.Context, turn string) (content []byte, err error)
}

// MessageStore stores the states of messages.
type MessageStore interface {
	// SaveMessage stores a message and replaces the one with its key. A killed process loses no message. A power
	// failure may lose the fact that one is Sending, unless the message has Content.
	SaveMessage(ctx context.Context, m Message) error
	// FindMessage returns the message with a key; its State is empty if there is none.
	FindMessage(ctx context.Context, key string) (Message, error)
	// MessageAt returns the message with a number in a conversation; its State is empty if there is none.
	MessageAt(ctx context.Context, in ConversationID, id int) (Message, error)
	// MessagesOf lists the messages of a turn, in the order in which they were first stored.
	MessagesOf(ctx context.Context, turn cli.TurnID) ([]Message, error)
	// OwedMessages lists the messages with Content, in the order in which they were first stored.
	OwedMessages(ctx context.Context) ([]Message, error)
}

// RateStore stores the observed rate limits of chats.
type RateStore interface {
	// SendRates lists the rate last saved for each chat.
	SendRates(ctx context.Context) ([]SendRate, error)
	SaveSendRate(ctx context.Context, r SendRate) error
}

// TopicStore keeps the topics that ductor opened.
type TopicStore interface {
	// Topics returns the topics that ductor opened, with the text that each icon stands for.
	Topics(ctx context.Context) (map[ConversationID]string, error)
	// SaveTopic stores the text that a topic's icon stands for. The store never forgets a topic.
	SaveTopic(ctx context.Context, in ConversationID, shows string) error
}

// SendRate limits the calls to Telegram for a chat. ductor learns it from rate limit errors. Chat 0 is the whole bot.
type SendRate struct {
	Chat  int64
	Every time.Duration // between two calls, on average
	Burst int           // calls at once
	Until time.Time     // Telegram accepts no call before it
	Told  time.Time     // when Telegram set Until
}

// SendState is the state of an outgoing message.
type SendState string

// The states of an outgoing message. ductor never sends an Unknown message again without a check.
const (
	Pending SendState = "pending" // not tried
	Sending SendState = "sending" // may or may not have left
	Sent    SendState = "sent"
	Unknown SendState = "unknown" // sent, but no answer arrived
	Failed  SendState = "failed"  // refused for good
	Removed SendState = "removed" // no longer in the chat
)

// EndShown is the Mark of a message whose final text the chat shows, so that the store no longer lists it as waiting.
const EndShown = -1

// Message is the stored state of one of the bot's messages.
type Message struct {
	Key          string     // unique name
	Turn         cli.TurnID // the turn that the message belongs to; empty for none
	Conversation ConversationID
	State        SendState
	ID           int   // Telegram's number; 0 before it is known
	Mark         int64 // a note of its sender; EndShown once the chat shows the message's final text
	// The final content, as package bot encodes it; nil once the chat shows it, or if its sender can restore it.
	Content []byte
}

// DiskState is the state of the disk under the store.
type DiskState string

// The states of a disk. While the disk is full nothing is stored; RetryDisk checks whether that has changed. After a
// disk failure it is unknown which data was written, so the store rejects all writes until a restart.
const (
	DiskWorks  DiskState = "works"
	DiskFull   DiskState = "full"
	DiskFailed DiskState = "failed"
	// DiskDamaged means that the database cannot be read. The next start moves it aside.
	DiskDamaged DiskState = "damaged"
)

// Errors of writes that the disk rejects.
var (
	ErrDiskFull   = errors.New("the disk is full: free some space; nothing of this step was stored")
	ErrDiskFailed = errors.New("the disk under the database reports an error")
	ErrDamaged    = errors.New("the database is damaged")
)

// Disk monitors the disk under a Journal.
type Disk interface {
	// Disk returns the state of the disk, and a context that is done once the state has changed.
	Disk() (DiskState, context.Context)
	// RetryDisk checks whether a full disk has space again, and writes the data that is still missing there. It returns
	// an error if it cannot.
	RetryDisk(ctx context.Context) error
	// WaitingConversations lists the conversations with a turn that waits, runs, or has ended without being shown.
	WaitingConversations(ctx context.Context) ([]ConversationID, error)
}
