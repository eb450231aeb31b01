package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// Update is one incoming Telegram update in raw form. This package does not interpret it.
type Update struct {
	ID  int64
	Raw []byte // nil if only the ID is stored, because the update needs no handling
	// Received is when the update was first stored, to the millisecond; zero if it is not stored.
	Received time.Time
	// Crashes is how often ductor crashed before it had handled the update.
	Crashes int
}

// MostCrashes limits the crashes of ductor during one update or turn. After that many crashes, ductor gives it up.
const MostCrashes = 2

// Handled marks updates as handled and queues the notices that answer them. A method that takes a Handled stores it in
// one transaction with the effect of the updates.
type Handled struct {
	Updates []int64
	Notices []Message
}

// Journal stores incoming updates until they are handled, and outgoing messages until they are sent. Data is durable
// when a method returns, except where the method's comment differs. internal/store implements Journal, and package bot
// uses it.
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

	// AppendUpdates stores updates before ductor acknowledges them to Telegram. It returns the new updates, which need
	// handling. It skips known IDs, unless so much time has passed that Telegram may have restarted its numbering. If
	// the process is killed, no update is lost. If the power fails, updates may be lost until Flush has returned.
	AppendUpdates(ctx context.Context, updates []Update) (fresh []Update, err error)
	// Flush returns once everything that was stored before the call survives a power failure.
	Flush(ctx context.Context) error
	// PendingUpdates lists unhandled updates with IDs above after, in order of ID.
	PendingUpdates(ctx context.Context, after int64, limit int) ([]Update, error)
	// FinishUpdates marks updates handled and queues their notices, both or neither.
	FinishUpdates(ctx context.Context, ids []int64, notices ...Message) error
	// ForgetUpdates is FinishUpdates for updates that contain a secret. It also erases the text of these updates from
	// all files of the store.
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
	// SaveMessage stores a message and replaces the message with the same key. If the process is killed, no message is
	// lost. If the power fails, the state Sending may be lost, unless the message has Content.
	SaveMessage(ctx context.Context, m Message) error
	// FindMessage returns the message with a key; its State is empty if there is none.
	FindMessage(ctx context.Context, key string) (Message, error)
	// MessageAt returns the message with a number in a conversation; its State is empty if there is none.
	MessageAt(ctx context.Context, in ConversationID, id int) (Message, error)
	// MessagesOf lists the messages of a turn, in the order in which they were first stored.
	MessagesOf(ctx context.Context, turn cli.TurnID) ([]Message, error)
	// OwedMessages lists the messages whose Content is still to be sent, in the order in which they were first stored.
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

// EndShown is the Mark of a message after the chat shows its final text. The store no longer lists such a message as
// waiting.
const EndShown = -1

// Message is the stored state of one of the bot's messages.
type Message struct {
	Key          string     // unique name
	Turn         cli.TurnID // the turn that the message belongs to; empty for none
	Conversation ConversationID
	State        SendState
	ID           int   // Telegram's number; 0 before it is known
	Mark         int64 // a note of its sender; EndShown once the chat shows the message's final text
	// Content is the final content, as package bot encodes it. It is nil once the chat shows it, and for messages whose
	// sender can restore the content.
	Content []byte
}

// DiskState is the state of the disk that holds the store.
type DiskState string

// DiskState values. While the disk is full, the store rejects writes, until RetryDisk finds that the disk has space
// again. After a disk failure it is unknown which data was written, so the store rejects all writes until a restart.
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
	// RetryDisk checks whether a full disk has space again, and then writes the data that could not be written before.
	// It returns an error if it still cannot.
	RetryDisk(ctx context.Context) error
	// WaitingConversations lists the conversations with a turn that waits, that runs, or that has ended without being
	// shown.
	WaitingConversations(ctx context.Context) ([]ConversationID, error)
}
