package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// Update is an incoming Telegram update in raw form. Package bot parses it.
type Update struct {
	ID  int64
	Raw []byte // JSON from Telegram; nil if the update needs no handling, so that the store contains only its ID
	// Received is when the update was first stored, to the millisecond. It is zero for an update that is not stored.
	Received time.Time
	// Crashes counts how often ductor crashed while it handled the update.
	Crashes int
}

// MostCrashes limits how often ductor tries to handle an update or a turn during which it crashes.
const MostCrashes = 2

// Handled lists updates that are now handled, and the messages that answer them. A method with a Handled parameter
// marks these updates and queues these messages in the same transaction that stores the method's effect.
type Handled struct {
	Updates []int64
	Notices []Message
}

// Journal stores incoming updates until they are handled, and outgoing messages until they are sent. Data survives a
// power failure once a method has returned, unless the comment of the method says otherwise. internal/store implements
// Journal, and package bot uses it.
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

	// AppendUpdates stores updates before ductor acknowledges them to Telegram. It returns the updates that are new.
	// Updates with a known ID are skipped, unless Telegram may have restarted its numbering in the meantime. Stored
	// updates survive if the process is killed. A power failure may lose them until Flush has returned.
	AppendUpdates(ctx context.Context, updates []Update) (fresh []Update, err error)
	// Flush returns once the data stored before the call will survive a power failure.
	Flush(ctx context.Context) error
	// PendingUpdates lists updates that are not handled and whose ID is greater than after, in ascending order.
	PendingUpdates(ctx context.Context, after int64, limit int) ([]Update, error)
	// FinishUpdates marks updates as handled and queues the messages that answer them, in one transaction. It ignores IDs
	// that are not stored.
	FinishUpdates(ctx context.Context, ids []int64, notices ...Message) error
	// ForgetUpdates does the same as FinishUpdates, for updates that contain a secret. It also erases the text of the
	// updates from all files of the store.
	ForgetUpdates(ctx context.Context, ids []int64, notices ...Message) error
}

// CardStore stores the contents of messages. The key is the ID of a turn, or another name for a message with buttons.
type CardStore interface {
	// SaveCard stores the content that the message of a turn shows after the turn has ended.
	SaveCard(ctx context.Context, turn string, content []byte) error
	// LoadCard returns the content that SaveCard stored, or nil.
	LoadCard(ctx context.Context, turn string) (content []byte, err error)
}

// MessageStore stores the bot's outgoing messages and their states.
type MessageStore interface {
	// SaveMessage stores a message and replaces the message with the same key. The message survives if the process is
	// killed. A power failure may lose it only if it has no Content. A message that is neither being sent nor has Content
	// survives only after CommitMessages, or a few milliseconds later.
	SaveMessage(ctx context.Context, m Message) error
	// CommitMessages makes all saved messages survive if the process is killed.
	CommitMessages(ctx context.Context) error
	// FindMessage returns the message with a key. For an unknown key, the State of the result is empty.
	FindMessage(ctx context.Context, key string) (Message, error)
	// MessageAt returns the message with a Telegram message ID. For an unknown ID, the State of the result is empty.
	MessageAt(ctx context.Context, in ConversationID, id int) (Message, error)
	// MessagesOf lists the messages of a turn, in the order in which they were created.
	MessagesOf(ctx context.Context, turn cli.TurnID) ([]Message, error)
	// OwedMessages lists the messages that have Content to be sent, in the order in which they were created.
	OwedMessages(ctx context.Context) ([]Message, error)
}

// RateStore stores how fast ductor may send messages to chats.
type RateStore interface {
	// SendRates lists the latest rate of each chat.
	SendRates(ctx context.Context) ([]SendRate, error)
	SaveSendRate(ctx context.Context, r SendRate) error
}

// TopicStore stores which topics ductor created in chats.
type TopicStore interface {
	// Topics returns the topics that ductor created. The value is the text for which the topic's icon was chosen.
	Topics(ctx context.Context) (map[ConversationID]string, error)
	// SaveTopic stores the text for which a topic's icon was chosen. Topics are never deleted from the store.
	SaveTopic(ctx context.Context, in ConversationID, shows string) error
}

// SendRate limits how often ductor calls Telegram for a chat. ductor derives it from Telegram's rate limit errors. The
// rate of chat 0 limits all calls of the bot.
type SendRate struct {
	Chat  int64
	Every time.Duration // average time from one call to the next
	Burst int           // number of calls that may follow each other without a pause
	Until time.Time     // Telegram rejects calls before this time
	Told  time.Time     // when Telegram reported the time Until
}

// SendState is the state of an outgoing message.
type SendState string

// SendState values. Before ductor sends a message in the state Unknown again, it checks whether the chat already shows
// it.
const (
	Pending SendState = "pending" // not sent yet
	Sending SendState = "sending" // being sent; it is not known yet whether Telegram received it
	Sent    SendState = "sent"
	Unknown SendState = "unknown" // sent, but Telegram's answer did not arrive
	Failed  SendState = "failed"  // Telegram rejected it permanently
	Removed SendState = "removed" // deleted from the chat
)

// EndShown is the Mark of a message whose final text the chat shows. The store no longer lists such a message as
// waiting.
const EndShown = -1

// Message is the stored state of one of the bot's messages.
type Message struct {
	Key          string     // unique name
	Turn         cli.TurnID // the turn of the message; empty for none
	Conversation ConversationID
	State        SendState
	ID           int   // Telegram's message ID; 0 before it is known
	Mark         int64 // EndShown, or a number that identifies the content
	// Content is the final content, encoded by package bot. It is nil if the chat already shows it, and if package bot
	// can compute it again.
	Content []byte
}

// DiskState is the state of the disk that holds the store.
type DiskState string

// DiskState values. While the disk is full, the store rejects writes until RetryDisk finds free space. After another
// disk error it rejects all writes until a restart, because it is unknown which data was written.
const (
	DiskWorks  DiskState = "works"
	DiskFull   DiskState = "full"
	DiskFailed DiskState = "failed"
	// DiskDamaged means that the database is unreadable. At the next start ductor renames the file and creates a new
	// one.
	DiskDamaged DiskState = "damaged"
)

// Errors of writes that fail because of the disk's state.
var (
	ErrDiskFull   = errors.New("the disk is full: free some space; nothing of this step was stored")
	ErrDiskFailed = errors.New("the disk under the database reports an error")
	ErrDamaged    = errors.New("the database is damaged")
)

// Disk monitors the disk of a Journal.
type Disk interface {
	// Disk returns the state of the disk, and a context that is cancelled when the state changes.
	Disk() (DiskState, context.Context)
	// RetryDisk checks whether a full disk has free space again. If so, it writes the pending data and returns nil.
	RetryDisk(ctx context.Context) error
	// WaitingConversations lists the conversations with a turn that waits or runs, or whose outcome the chat does not
	// show yet.
	WaitingConversations(ctx context.Context) ([]ConversationID, error)
}
