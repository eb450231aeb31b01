package orchestrator

import (
	"fmt"
	"strconv"
	"time"

	"ductor/cli"
)

// ConversationID is a chat and a topic in it: the place where one turn runs at a time.
type ConversationID struct {
	Chat  int64
	Topic int // message thread id; 0 outside topics
}

// Key is the conversation as the cli package knows it.
func (id ConversationID) Key() cli.Conversation {
	return cli.Conversation(strconv.FormatInt(id.Chat, 10) + "/" + strconv.Itoa(id.Topic))
}

// Group says whether others than one user read it: Telegram gives groups numbers below zero.
func (id ConversationID) Group() bool { return id.Chat < 0 }

// ParseKey is the inverse of ConversationID.Key.
func ParseKey(key cli.Conversation) (ConversationID, error) {
	var id ConversationID
	if n, err := fmt.Sscanf(string(key), "%d/%d", &id.Chat, &id.Topic); n != 2 || err != nil {
		return ConversationID{}, fmt.Errorf("parse conversation key %q: %w", key, err)
	}
	return id, nil
}

// UploadFolder is the name of the folder, in the uploads directory, that holds the files people sent to it.
func (id ConversationID) UploadFolder() string {
	return strconv.FormatInt(id.Chat, 10) + "_" + strconv.Itoa(id.Topic)
}

// PersonID is a Telegram user.
type PersonID int64

// Conversation is what one chat chose. Nothing in it applies to any other chat.
type Conversation struct {
	ID         ConversationID
	Session    SessionID // the current one; empty before the first turn
	Agent      cli.Agent // empty means the configured default
	Model      cli.ModelID
	Effort     cli.Effort
	Permission cli.PermissionMode // empty means the configured default
	// BypassUntil is when a Permission of cli.Bypass ends.
	BypassUntil time.Time
	Dir         string // empty means the configured default
	Role        string // name of a role, or NoRole; empty means the configured default
	Settings
}

// Settings are how a chat wants its turns. Empty values mean the configured defaults.
type Settings struct {
	Busy   BusyMode // what becomes of a prompt that comes while a turn runs; empty means BusyQueue
	Notify NotifyMode
	Think  ThinkMode
}

// NotifyMode says which turns end with a message that notifies.
type NotifyMode string

// The notify modes.
const (
	NotifyAlways NotifyMode = "always"
	NotifyLong   NotifyMode = "long" // those that took long
	NotifyNever  NotifyMode = "never"
)

// NotifyModes lists every mode.
func NotifyModes() []NotifyMode { return []NotifyMode{NotifyAlways, NotifyLong, NotifyNever} }

// ThinkMode says whether reasoning is shown.
type ThinkMode string

// The think modes.
const (
	ThinkOn  ThinkMode = "on"
	ThinkOff ThinkMode = "off"
)

// ThinkModes lists every mode.
func ThinkModes() []ThinkMode { return []ThinkMode{ThinkOn, ThinkOff} }

// NoRole stands in Conversation.Role for a conversation that is to play none, whatever the configured default.
const NoRole = "(none)"

// How long a bypass lasts that was chosen in a chat.
const (
	DefaultBypass = time.Hour
	MostBypass    = 24 * time.Hour
)

// BusyMode is what becomes of a prompt that comes while a turn runs.
type BusyMode string

// The busy modes. Queue is the default, and what the others fall back to.
const (
	BusyQueue     BusyMode = "queue"     // it waits
	BusySteer     BusyMode = "steer"     // it is handed to the turn that runs
	BusyInterrupt BusyMode = "interrupt" // the turn that runs is ended for it
)

// BusyModes lists every mode, the default first.
func BusyModes() []BusyMode { return []BusyMode{BusyQueue, BusySteer, BusyInterrupt} }
