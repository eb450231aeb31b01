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
	Raw []byte // JSON from Telegram; nil for an update that needs no handling: the store contains only its ID
	// Received is when the update was first stored, to the millisecond. It is zero for an update that is not stored.
	Received time.Time
	// Crashes is the number of times that ductor crashed while handling the update.
	Crashes int
}

// MostCrashes limits how often ductor tries to handle an update or a turn during which it crashes.
const MostCrashes = 2

// Handled contains updates that need no more handling, and the bot's messages about them. A method with a parameter of
// this type marks the updates as handled and queues the messages, in the same transaction as its other writes.
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

	// AppendUpdates stores updates before ductor acknowledges them to Telegram, and returns the new ones. An update is
	// not new if an update with its ID is stored. But Telegram may have restarted the numbering of updates: then an
	// update with a stored ID can be new. Stored updates survive if the process is killed. They survive a power failure
	// once Flush has returned.
	AppendUpdates(ctx context.Context, updates []Update) (fresh []Update, err error)
	// Flush returns once the data stored before the call will survive a power failure.
	Flush(ctx context.Context) error
	// PendingUpdates lists updates that are not handled and whose ID is greater than the given one, in ascending order.
	PendingUpdates(ctx context.Context, after int64, limit int) ([]Update, error)
	// FinishUpdates marks updates as handled and queues the messages that answer them, in one transaction. It ignores IDs
	// that are not stored.
	FinishUpdates(ctx context.Context, ids []int64, notices ...Message) error
	// ForgetUpdates does the same as FinishUpdates, for updates that contain a secret. It also erases the text of the
	// updates from all files of the store.
	ForgetUpdates(ctx context.Context, ids []int64, notices ...Message) error
}

// CardStore stores the contents of messages. The contents of a turn's card are stored under the ID of the turn. Other
// messages with buttons have names of their own.
type CardStore interface {
	// SaveCard stores what a message shows. For the card of a turn, this is the content after the end of the turn.
	SaveCard(ctx context.Context, turn string, content []byte) error
	// LoadCard returns the content that SaveCard stored, or nil.
	LoadCard(ctx context.Context, turn string) (content []byte, err error)
}

// MessageStore stores the bot's outgoing messages and their states.
type MessageStore interface {
	// SaveMessage stores a message and replaces the message with the same key. How safe the message is depends on its
	// kind:
	//   - A message with Content survives a power failure.
	//   - A message that is being sent survives if the process is killed.
	//   - Any other message is lost if the process is killed within a few milliseconds, unless CommitMessages was
	//     called.
	SaveMessage(ctx context.Context, m Message) error
	// AddMessage stores a message, unless a message has the same key. It reports whether it stored the message.
	AddMessage(ctx context.Context, m Message) (bool, error)
	// CommitMessages ensures that all messages saved so far survive if the process is killed.
	CommitMessages(ctx context.Context) error
	// FindMessage returns the message with a key. For an unknown key, the State of the result is empty.
	FindMessage(ctx context.Context, key string) (Message, error)
	// MessageAt returns the message with a Telegram message ID. For an unknown ID, the State of the result is empty.
	MessageAt(ctx context.Context, in ConversationID, id int) (Message, error)
	// MessagesOf lists the messages of a turn, in the order in which they were created.
	MessagesOf(ctx context.Context, turn cli.TurnID) ([]Message, error)
	// OwedMessages lists the messages whose Content the bot must still send. They are in the order of their creation.
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
	// Topics returns the topics that ductor created. Each value is the state that the topic's icon shows.
	Topics(ctx context.Context) (map[ConversationID]string, error)
	// SaveTopic stores a topic that ductor created, with the state that the topic's icon shows, such as "idle". Topics
	// are never deleted from the store.
	SaveTopic(ctx context.Context, in ConversationID, shows string) error
}

// SendRate is the maximum rate of ductor's calls to Telegram for a chat. ductor computes it from Telegram's rate limit
// errors. The rate of chat 0 applies to all calls of the bot together.
type SendRate struct {
	Chat  int64
	Every time.Duration // average time from one call to the next
	Burst int           // number of calls that may be made without a pause in between
	Until time.Time     // Telegram rejects calls before this time
	Told  time.Time     // when Telegram sent the error that set Until
}

// SendState is the state of an outgoing message.
type SendState string

// SendState values. A message in the state Unknown may be in the chat already. ductor finds this out before it sends
// the message again.
const (
	Pending SendState = "pending" // not sent yet
	Sending SendState = "sending" // being sent; it is not known yet whether Telegram received it
	Sent    SendState = "sent"
	Unknown SendState = "unknown" // sent, but Telegram's answer did not arrive
	Failed  SendState = "failed"  // Telegram rejected it permanently
	Removed SendState = "removed" // deleted from the chat
)

// EndShown is the value of Message.Mark if the chat shows the final text of a message. TurnsShownWaiting and
// ApprovalsShownOpen do not consider such a message.
const EndShown = -1

// Message is the stored state of one of the bot's messages.
type Message struct {
	Key          string     // unique name
	Turn         cli.TurnID // the turn of the message; empty for none
	Conversation ConversationID
	State        SendState
	ID           int   // Telegram's message ID; 0 before it is known
	Mark         int64 // identifies the content that the chat shows; EndShown for the final content
	// Content is the final content, encoded by package bot. It is nil if the chat shows the final content and package
	// bot can compute it again.
	Content []byte
}

// DiskState is the state of the disk that holds the store.
type DiskState string

// DiskState values. While the disk is full, the store rejects writes. Disk.RetryDisk ends this when there is free
// space. After any other disk error, the store rejects all writes until a restart, because nobody knows which data was
// written.
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
