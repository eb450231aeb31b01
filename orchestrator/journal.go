package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// Update is one incoming Telegram update in raw form. Package orchestrator does not interpret it.
type Update struct {
	ID  int64
	Raw []byte // nil if the update needs no handling and the store keeps only the ID
	// Received is when the update was first stored, to the millisecond; zero if it is not stored.
	Received time.Time
	// Crashes is the number of crashes of ductor while it handled the update.
	Crashes int
}

// MostCrashes is the number of crashes during one update or turn after which ductor gives up that update or turn.
const MostCrashes = 2

// Handled marks updates as handled and queues the notices that answer them. A method with a Handled parameter stores it
// in the transaction that stores the effect of the updates.
type Handled struct {
	Updates []int64
	Notices []Message
}

// Journal stores incoming updates until they are handled, and outgoing messages until they are sent. Data is durable
// when a method returns, unless the method's comment says otherwise. internal/store implements Journal, and package bot
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
	// handling. It skips known IDs, unless Telegram may have restarted its numbering since. No update is lost if the
	// process is killed. A power failure may lose updates until Flush has returned.
	AppendUpdates(ctx context.Context, updates []Update) (fresh []Update, err error)
	// Flush returns once a power failure can no longer lose data that was stored before the call.
	Flush(ctx context.Context) error
	// PendingUpdates lists unhandled updates with IDs above after, in order of ID.
	PendingUpdates(ctx context.Context, after int64, limit int) ([]Update, error)
	// FinishUpdates marks updates as handled and queues their notices, in one transaction.
	FinishUpdates(ctx context.Context, ids []int64, notices ...Message) error
	// ForgetUpdates is FinishUpdates for updates that contain a secret. It also erases the text of these updates from
	// all files of the store.
	ForgetUpdates(ctx context.Context, ids []int64, notices ...Message) error
}

// CardStore stores the contents of cards by turn ID, and the states of screens by other keys.
type CardStore interface {
	// SaveCard stores the final content of a turn's card.
	SaveCard(ctx context.Context, turn string, content []byte) error
	// LoadCard returns the content that SaveCard stored, or nil if there is none.
	LoadCard(ctx context.Context, turn string) (content []byte, err error)
}

// MessageStore stores the states of messages.
type MessageStore interface {
	// SaveMessage stores a message and replaces the message with the same key. No message is lost if the process is
	// killed. A power failure may lose the state Sending of a message without Content.
	SaveMessage(ctx context.Context, m Message) error
	// FindMessage returns the message with a key; its State is empty if there is none.
	FindMessage(ctx context.Context, key string) (Message, error)
	// MessageAt returns the message with a number in a conversation; its State is empty if there is none.
	MessageAt(ctx context.Context, in ConversationID, id int) (Message, error)
	// MessagesOf lists the messages of a turn, in the order in which they were first stored.
	MessagesOf(ctx context.Context, turn cli.TurnID) ([]Message, error)
	// OwedMessages lists the messages whose Content is not sent yet, in the order in which they were first stored.
	OwedMessages(ctx context.Context) ([]Message, error)
}

// RateStore stores the observed rate limits of chats.
type RateStore interface {
	// SendRates lists the last rate of each chat.
	SendRates(ctx context.Context) ([]SendRate, error)
	SaveSendRate(ctx context.Context, r SendRate) error
}

// TopicStore stores the topics that ductor opened.
type TopicStore interface {
	// Topics returns the topics that ductor opened, each with the text that its icon represents.
	Topics(ctx context.Context) (map[ConversationID]string, error)
	// SaveTopic stores the text that a topic's icon represents. The store never deletes a topic.
	SaveTopic(ctx context.Context, in ConversationID, shows string) error
}

// SendRate limits the calls to Telegram for a chat. ductor learns the rate from rate limit errors. The rate of chat 0
// applies to the whole bot.
type SendRate struct {
	Chat  int64
	Every time.Duration // average time between two calls
	Burst int           // number of calls without a pause
	Until time.Time     // Telegram rejects calls before this time
	Told  time.Time     // when Telegram reported Until
}

// SendState is the state of an outgoing message.
type SendState string

// SendState values. ductor does not resend an Unknown message before it has checked whether the chat shows it.
const (
	Pending SendState = "pending" // not sent yet
	Sending SendState = "sending" // being sent; Telegram may or may not have received it
	Sent    SendState = "sent"
	Unknown SendState = "unknown" // sent, but no answer arrived
	Failed  SendState = "failed"  // Telegram rejected it permanently
	Removed SendState = "removed" // deleted from the chat
)

// EndShown is the Mark of a message after the chat shows its final text. The store then no longer lists the message as
// waiting.
const EndShown = -1

// Message is the stored state of one of the bot's messages.
type Message struct {
	Key          string     // unique name
	Turn         cli.TurnID // the turn of the message; empty for none
	Conversation ConversationID
	State        SendState
	ID           int   // Telegram's message ID; 0 before it is known
	Mark         int64 // a number for the sender's own use, or EndShown
	// Content is the final content, encoded by package bot. It is nil once the chat shows it, and for messages whose
	// sender can restore the content.
	Content []byte
}

// DiskState is the state of the disk that holds the store.
type DiskState string

// DiskState values. While the disk is full, the store rejects writes until RetryDisk finds free space. After a disk
// failure the store rejects all writes until a restart, because it is unknown which data was written.
const (
	DiskWorks  DiskState = "works"
	DiskFull   DiskState = "full"
	DiskFailed DiskState = "failed"
	// DiskDamaged means that the database cannot be read. The next start moves the database file aside.
	DiskDamaged DiskState = "damaged"
)

// Errors of writes that the disk rejects.
var (
	ErrDiskFull   = errors.New("the disk is full: free some space; nothing of this step was stored")
	ErrDiskFailed = errors.New("the disk under the database reports an error")
	ErrDamaged    = errors.New("the database is damaged")
)

// Disk monitors the disk of a Journal.
type Disk interface {
	// Disk returns the state of the disk, and a context that ends when the state changes.
	Disk() (DiskState, context.Context)
	// RetryDisk checks whether a full disk has free space again, and then writes the pending data. It returns an error
	// if that fails.
	RetryDisk(ctx context.Context) error
	// WaitingConversations lists the conversations with a turn that waits, runs, or has ended without being shown.
	WaitingConversations(ctx context.Context) ([]ConversationID, error)
}
