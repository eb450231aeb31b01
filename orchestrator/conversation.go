package orchestrator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ductor/cli"
)

// ConversationID identifies a chat and a topic in it. A conversation runs one turn at a time.
type ConversationID struct {
	Chat  int64 `toml:"chat"`
	Topic int   `toml:"topic"` // message thread id; 0 outside topics
}

// Key returns the conversation's key in package cli.
func (id ConversationID) Key() cli.Conversation {
	return cli.Conversation(strconv.FormatInt(id.Chat, 10) + "/" + strconv.Itoa(id.Topic))
}

// Group reports whether the chat is a group, so that other users can read it. Telegram gives groups negative ids.
func (id ConversationID) Group() bool { return id.Chat < 0 }

// Shown returns the conversation that shows the activity of this conversation. An Outsider's conversation has a
// negative topic, which Telegram never uses. Its activity appears in the main topic.
func (id ConversationID) Shown() ConversationID {
	return ConversationID{Chat: id.Chat, Topic: max(id.Topic, 0)}
}

// ParseKey is the inverse of ConversationID.Key.
func ParseKey(key cli.Conversation) (ConversationID, error) {
	var id ConversationID
	if n, err := fmt.Sscanf(string(key), "%d/%d", &id.Chat, &id.Topic); n != 2 || err != nil {
		return ConversationID{}, fmt.Errorf("parse conversation key %q: %w", key, err)
	}
	return id, nil
}

// UploadFolder returns the name of the conversation's folder in the uploads directory. The folder contains the files
// that users sent.
func (id ConversationID) UploadFolder() string {
	return strconv.FormatInt(id.Chat, 10) + "_" + strconv.Itoa(id.Topic)
}

// PersonID is a Telegram user.
type PersonID int64

// Conversation holds the choices that users made in one conversation.
type Conversation struct {
	ID         ConversationID
	Session    SessionID // the current session; empty before the first turn
	Agent      cli.Agent // empty means the configured default
	Model      cli.ModelID
	Effort     cli.Effort
	Permission cli.PermissionMode // empty means the configured default
	// GrantedIn is the environment in which a user chose a Permission above ask. The Permission applies only in this
	// environment. Empty means this host.
	GrantedIn cli.Sandbox
	// BypassUntil is the time at which a Permission of cli.Bypass ends.
	BypassUntil time.Time
	Dir         string // empty means the configured default
	Role        string // name of a role, or NoRole; empty means the configured default
	Tools       cli.ToolList
	Settings    Settings
}

// Settings are a conversation's preferences for its turns. Empty values mean the configured defaults.
type Settings struct {
	Accounts cli.Accounts // of agents, in all environments
	Busy     BusyMode     // how to handle a prompt while a turn runs; empty means BusyQueue
	Notify   NotifyMode
	Think    ThinkMode
	// Display applies to all topics of a chat. ductor uses only the value of the main topic.
	Display DisplayMode
}

// Setting names one of the Settings.
type Setting string

// The settings.
const (
	SettingBusy    Setting = "busy"
	SettingNotify  Setting = "notify"
	SettingThink   Setting = "think"
	SettingDisplay Setting = "display"
)

// Words lists the values that users can choose for a setting.
func (s Setting) Words() []string {
	switch s {
	case SettingBusy:
		return []string{string(BusyQueue), string(BusySteer), string(BusyInterrupt)}
	case SettingNotify:
		return []string{string(NotifyAlways), string(NotifyLong), string(NotifyNever)}
	case SettingThink:
		return []string{string(ThinkOn), string(ThinkOff)}
	case SettingDisplay:
		return []string{string(DisplayRich), string(DisplayPlain)}
	}
	return nil
}

// Word returns the value of a setting as one of its Words.
func (s Settings) Word(of Setting) string {
	switch {
	case of == SettingBusy:
		return string(s.Busy)
	case of == SettingNotify:
		return string(s.Notify)
	case of == SettingThink:
		return string(s.Think)
	case s.Display == DisplayRich:
		return string(DisplayRich)
	}
	return string(DisplayPlain)
}

// Set sets a setting to one of its Words.
func (s *Settings) Set(of Setting, word string) {
	switch of {
	case SettingBusy:
		s.Busy = BusyMode(word)
	case SettingNotify:
		s.Notify = NotifyMode(word)
	case SettingThink:
		s.Think = ThinkMode(word)
	case SettingDisplay:
		s.Display = DisplayMode(word)
	}
}

// NotifyMode selects the turns that end with a notification.
type NotifyMode string

// The notify modes.
const (
	NotifyAlways NotifyMode = "always"
	NotifyLong   NotifyMode = "long" // only turns that took long
	NotifyNever  NotifyMode = "never"
)

// ThinkMode selects whether cards show reasoning.
type ThinkMode string

// The think modes.
const (
	ThinkOn  ThinkMode = "on"
	ThinkOff ThinkMode = "off"
)

// DisplayMode selects whether a chat gets rich messages. Telegram does not report whether a user's app can show them.
type DisplayMode string

// The display modes.
const (
	DisplayRich  DisplayMode = "rich"  // the chat shows rich messages
	DisplayPlain DisplayMode = "plain" // the chat cannot show rich messages, or the user does not want them
	DisplayAsk   DisplayMode = "ask"   // ductor has not asked a user yet
	DisplayAsked DisplayMode = "asked" // ductor asked, but no user has answered yet; works like DisplayPlain
)

// NoRole is the value of Conversation.Role if a user chose no role. It overrides the configured default.
const NoRole = "(none)"

// Durations of a bypass that a user chooses in a chat.
const (
	DefaultBypass = time.Hour
	MostBypass    = 24 * time.Hour
)

// BusyMode selects how ductor handles a prompt that arrives while a turn runs.
type BusyMode string

// BusyMode values. BusyQueue is the default. The other modes queue a prompt if they cannot be applied.
const (
	BusyQueue     BusyMode = "queue"     // the prompt waits
	BusySteer     BusyMode = "steer"     // ductor adds the prompt to the running turn
	BusyInterrupt BusyMode = "interrupt" // ductor aborts the running turn
)

// Project is a directory that agents work in, with a name that users know.
type Project struct{ Name, Dir string }

// Worktree is a checkout of a branch of a project.
type Worktree struct {
	Dir    string
	Branch string // empty for none
	Main   bool   // the project's first worktree, which ductor never removes
	Merged bool   // all commits of the branch are in the branch of the main worktree
	Gone   bool   // the directory no longer exists
}

// Projects lets users open projects and worktrees. It returns only directories inside the configured roots. Package
// orchestrator/projects implements it.
type Projects interface {
	// Projects lists the configured projects and the repositories inside the roots, by name.
	Projects(ctx context.Context) ([]Project, error)
	// OpenProject moves a conversation to a project. If branch is not empty, it moves the conversation to a worktree
	// with that branch, and creates the worktree if needed. It may return ErrNoProject, ErrBadBranch or
	// ErrNoRepository.
	OpenProject(ctx context.Context, by Press, name, branch string) (dir string, err error)
	// Worktrees lists the worktrees of the conversation's repository, or returns ErrNoRepository.
	Worktrees(ctx context.Context, in ConversationID) ([]Worktree, error)
	// OpenWorktree moves a conversation to a worktree that Worktrees lists, or returns ErrNoProject.
	OpenWorktree(ctx context.Context, by Press, dir string) error
	// RemoveWorktree removes a worktree that Worktrees lists, and keeps its branch. A conversation that works in the
	// worktree moves to the main worktree. RemoveWorktree returns ErrDirtyWorktree if the worktree has uncommitted
	// changes and changes is KeepChanges. It returns ErrStillOpen while a turn of the conversation runs there, and
	// ErrNoProject for an unknown worktree.
	RemoveWorktree(ctx context.Context, by Press, dir string, changes Changes) error
}

// Changes selects how to handle uncommitted changes.
type Changes string

// Changes values.
const (
	KeepChanges Changes = ""
	DropChanges Changes = "drop"
)
