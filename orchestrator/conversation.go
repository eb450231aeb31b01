package orchestrator

import (
	"context"
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
	// GrantedIn is where a user chose a Permission above ask: it counts nowhere else. Empty is this host.
	GrantedIn cli.Sandbox
	// BypassUntil is when a Permission of cli.Bypass ends.
	BypassUntil time.Time
	Dir         string // empty means the configured default
	Role        string // name of a role, or NoRole; empty means the configured default
	Tools       cli.ToolList
	Settings
}

// Settings are how a chat wants its turns. Empty values mean the configured defaults.
type Settings struct {
	Busy   BusyMode // what becomes of a prompt that comes while a turn runs; empty means BusyQueue
	Notify NotifyMode
	Think  ThinkMode
	// Display counts for all topics of a chat. That of the chat's main topic is kept.
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

// Words lists what users can choose.
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

// Word is what a setting is, as one of its Words.
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

// Set chooses one of the Words of a setting.
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

// NotifyMode says which turns end with a message that notifies.
type NotifyMode string

// The notify modes.
const (
	NotifyAlways NotifyMode = "always"
	NotifyLong   NotifyMode = "long" // those that took long
	NotifyNever  NotifyMode = "never"
)

// ThinkMode says whether reasoning is shown.
type ThinkMode string

// The think modes.
const (
	ThinkOn  ThinkMode = "on"
	ThinkOff ThinkMode = "off"
)

// DisplayMode says what a chat shows of rich messages, of which Telegram does not say who sees them.
type DisplayMode string

// The display modes.
const (
	DisplayRich  DisplayMode = "rich"  // the chat shows them
	DisplayPlain DisplayMode = "plain" // it does not, or does not want them
	DisplayAsk   DisplayMode = "ask"   // no user was asked yet
	DisplayAsked DisplayMode = "asked" // no user has answered yet: like DisplayPlain
)

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

// Project is a directory that agents work in, by a name that users know.
type Project struct{ Name, Dir string }

// Worktree is a directory in which a branch of a project is checked out.
type Worktree struct {
	Dir    string
	Branch string // empty for none
	Main   bool   // the project's first, which is not removed
	Merged bool   // the branch holds nothing that the first one's does not
	Gone   bool   // the directory is not there any more
}

// Projects is what users do with projects; package orchestrator/projects implements it. Directories are given where they are inside the
// configured roots.
type Projects interface {
	// Projects lists the configured projects and the repositories inside the roots, by name.
	Projects(ctx context.Context) ([]Project, error)
	// OpenProject has a conversation work in a project, or where a branch of it is checked out, which is done at need. ErrNoProject,
	// ErrBadBranch, ErrNoRepository.
	OpenProject(ctx context.Context, by Press, name, branch string) (dir string, err error)
	// Worktrees lists those of the repository that a conversation works in. ErrNoRepository.
	Worktrees(ctx context.Context, in ConversationID) ([]Worktree, error)
	// OpenWorktree has a conversation work in one of Worktrees. ErrNoProject.
	OpenWorktree(ctx context.Context, by Press, dir string) error
	// RemoveWorktree removes one of Worktrees and keeps its branch; ErrDirtyWorktree if it holds what no commit does and the user did
	// not say that this is to be lost. A conversation that works there works in the first one from then on. ErrNoProject, ErrStillOpen
	// while a turn of the conversation runs there.
	RemoveWorktree(ctx context.Context, by Press, dir string, changes Changes) error
}

// Changes says what becomes of what no commit holds.
type Changes string

// What can become of them.
const (
	KeepChanges Changes = ""
	DropChanges Changes = "drop"
)
