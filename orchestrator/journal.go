package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// Update is one inbound Telegram update as it came; opaque here.
type Update struct {
	ID  int64
	Raw []byte // nil for one of which only the id is kept: there is nothing to do about it
	// Received is when it was stored first, to the millisecond; zero for one that is not stored.
	Received time.Time
	// Crashes is how often ductor crashed while it was not handled.
	Crashes int
}

// MostCrashes is how often ductor crashes while it deals with an update or a turn before it gives that up.
const MostCrashes = 2

// Handled is what is stored of updates together with what they caused: that they are handled, and the notices that answer
// them.
type Handled struct {
	Updates []int64
	Notices []Message
}

// Journal is the durable edge of the house: what came in and is not handled, what is to go out and is not
// sent. internal/store implements it, package bot uses it. Durable when a method returns, unless it says
// otherwise.
type Journal interface {
	Inbox
	CardStore
	MessageStore
	RateStore
	TopicStore
}

// Inbox keeps what came in until it is handled.
type Inbox interface {
	Disk

	// AppendUpdates stores updates before they are acknowledged, and returns those that have something in them
	// and are new: an id that is known is passed over, unless so much time has passed that Telegram has begun to
	// count anew. A killed process loses none of them; a power failure may until Flush has returned.
	AppendUpdates(ctx context.Context, updates []Update) (fresh []Update, err error)
	// Flush returns when all that was stored before it outlives a power failure.
	Flush(ctx context.Context) error
	// PendingUpdates lists updates with an id above after that are not handled, in order of id.
	PendingUpdates(ctx context.Context, after int64, limit int) ([]Update, error)
	// FinishUpdates marks updates handled and queues the notices they caused, both or neither.
	FinishUpdates(ctx context.Context, ids []int64, notices ...Message) error
	// ForgetUpdates is FinishUpdates for updates that hold a secret: nothing of their text is left in any file.
	ForgetUpdates(ctx context.Context, ids []int64, notices ...Message) error
}

// CardStore keeps the contents of cards by their turns, and what screens remember by keys that are no turn's.
type CardStore interface {
	// SaveCard stores the content of a turn's card, as the chat is finally to show it.
	SaveCard(ctx context.Context, turn string, content []byte) error
	// LoadCard returns what SaveCard stored; nil for what it never stored.
	LoadCard(ctx context.Context, turn string) (content []byte, err error)
}

// MessageStore has the states of messages.
type MessageStore interface {
	// SaveMessage stores a message in place of the one with its key. A killed process loses none of it; a power failure may
	// lose that one is Sending, unless it has Content.
	SaveMessage(ctx context.Context, m Message) error
	// FindMessage finds a message by its key; one without a State if there is none.
	FindMessage(ctx context.Context, key string) (Message, error)
	// MessageAt finds the message with a number in a conversation; one without a State if there is none.
	MessageAt(ctx context.Context, in ConversationID, id int) (Message, error)
	// MessagesOf lists the messages of a turn, in the order in which they were stored first.
	MessagesOf(ctx context.Context, turn cli.TurnID) ([]Message, error)
	// OwedMessages lists the messages with Content, in the order in which they were stored first.
	OwedMessages(ctx context.Context) ([]Message, error)
}

// RateStore keeps what is known of the limits of chats.
type RateStore interface {
	// SendRates lists the rate last saved for each chat.
	SendRates(ctx context.Context) ([]SendRate, error)
	SaveSendRate(ctx context.Context, r SendRate) error
}

// TopicStore keeps the topics that ductor opened.
type TopicStore interface {
	// Topics are the topics that ductor opened, and what the icon of each shows.
	Topics(ctx context.Context) (map[ConversationID]string, error)
	// SaveTopic stores what the icon of a topic shows; nothing forgets the topic.
	SaveTopic(ctx context.Context, in ConversationID, shows string) error
}

// SendRate is how often Telegram lets ductor call for a chat, as its refusals taught. Chat 0 is the whole bot.
type SendRate struct {
	Chat  int64
	Every time.Duration // between two calls in the long run
	Burst int           // calls at once
	Until time.Time     // Telegram wants no call before it
	Told  time.Time     // when that was so
}

// SendState is what is known about a message on its way out.
type SendState string

// The states of an outgoing message. Unknown is never sent again blindly.
const (
	Pending SendState = "pending" // not tried
	Sending SendState = "sending" // may or may not have left
	Sent    SendState = "sent"
	Unknown SendState = "unknown" // left, and no answer came
	Failed  SendState = "failed"  // refused for good
	Removed SendState = "removed" // no longer in the chat
)

// EndShown is the Mark of a message that says no longer that something waits.
const EndShown = -1

// Message is what is known about a message of the bot.
type Message struct {
	Key          string     // names it
	Turn         cli.TurnID // that it shows something of; empty for none
	Conversation ConversationID
	State        SendState
	ID           int    // Telegram's number; 0 before it is known
	Mark         int64  // what its sender notes with it; EndShown once the chat shows what it says in the end
	Content      []byte // what it must end up showing, as package bot encodes it; nil once it does, or if its sender knows
}

// DiskState says whether what is stored reaches the disk and can be read.
type DiskState string

// The states of a disk. While it is full nothing is stored; RetryDisk finds out whether it still is. Of one that
// failed only a restart tells what is on it, so nothing is stored any more.
const (
	DiskWorks  DiskState = "works"
	DiskFull   DiskState = "full"
	DiskFailed DiskState = "failed"
	// DiskDamaged: the database on it cannot be read. The next start moves it aside.
	DiskDamaged DiskState = "damaged"
)

// What a write says while the disk does not take it. Each text says what to do.
var (
	ErrDiskFull   = errors.New("the disk is full: free some space; nothing of this step was stored")
	ErrDiskFailed = errors.New("the disk under the database reports an error")
	ErrDamaged    = errors.New("the database is damaged")
)

// Disk watches the disk under a Journal.
type Disk interface {
	// Disk returns the state of the disk, and a context that is done once that has changed.
	Disk() (DiskState, context.Context)
	// RetryDisk looks whether a disk that was full takes something again, and brings to it what did not get
	// there. The error says what is in the way.
	RetryDisk(ctx context.Context) error
	// WaitingConversations lists the conversations in which a turn waits, runs, or ended and is not shown.
	WaitingConversations(ctx context.Context) ([]ConversationID, error)
}
