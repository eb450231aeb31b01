package orchestrator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ductor/cli"
)

// ConversationID identifies a conversation: a Telegram chat, and a topic in that chat. A conversation runs one turn at
// a time.
type ConversationID struct {
	Chat  int64 `toml:"chat"`
	Topic int   `toml:"topic"` // Telegram's message_thread_id; 0 outside of topics
}

// Key returns the ID in the form that package cli uses.
func (id ConversationID) Key() cli.Conversation {
	return cli.Conversation(strconv.FormatInt(id.Chat, 10) + "/" + strconv.Itoa(id.Topic))
}

// Group reports whether the chat is a group, which means that several users can read it. Telegram gives groups negative
// IDs.
func (id ConversationID) Group() bool { return id.Chat < 0 }

// Shown returns the conversation in which ductor shows the activity of this conversation. Usually this is the
// conversation itself. The conversation of an Outsider has a negative topic, which does not exist in Telegram, so
// ductor shows it in the chat's main topic.
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

// UploadFolder returns the name of the folder for files that users send to the conversation. It lies in the uploads
// directory.
func (id ConversationID) UploadFolder() string {
	return strconv.FormatInt(id.Chat, 10) + "_" + strconv.Itoa(id.Topic)
}

// PersonID is the ID of a Telegram user.
type PersonID int64

// Conversation holds the choices that users made in a conversation.
type Conversation struct {
	ID         ConversationID
	Session    SessionID // the current session; empty before the first turn
	Agent      cli.Agent // empty means the configured default
	Model      cli.ModelID
	Effort     cli.Effort
	Permission cli.PermissionMode // empty means the configured default
	// GrantedIn is the environment for which a user chose the Permission; empty means this host. A Permission that
	// allows more than the mode ask applies only in this environment.
	GrantedIn cli.Sandbox
	// BypassUntil is the end of the bypass if Permission is cli.Bypass.
	BypassUntil time.Time
	Dir         string // empty means the configured default
	Role        string // name of a role; NoRole for none; empty means the configured default
	Tools       cli.ToolList
	Settings    Settings
}

// SetMode sets the permission mode that a user chose for an environment. until is the end of a bypass, or zero.
func (c *Conversation) SetMode(mode cli.PermissionMode, in cli.Sandbox, until time.Time) {
	c.Permission, c.GrantedIn, c.BypassUntil = mode, in, until
}

// UseAgent changes the agent and its account to those of an environment. now is the agent that the next turn would use
// without the change. The agent, the model and the effort stay as they are if now is the new agent. UseAgent changes
// nothing if of is zero.
func (c *Conversation) UseAgent(of AgentEnv, now cli.Agent) {
	if of.Agent == "" {
		return
	}
	if c.Settings.Accounts = c.Settings.Accounts.With(of.Agent, of.Account); now != of.Agent {
		c.Agent, c.Model, c.Effort = of.Agent, "", ""
	}
}

// ContinueWith is like UseAgent for a session that an agent has used. If it used the default account, the account that
// the user chose for the agent stays.
func (c *Conversation) ContinueWith(of AgentEnv, now cli.Agent) {
	if of.Account == "" {
		of.Account = c.Settings.Accounts[of.Agent]
	}
	c.UseAgent(of, now)
}

// Settings are a conversation's preferences for its turns. Empty values mean the configured defaults.
type Settings struct {
	Accounts cli.Accounts // the chosen account of each agent, in all environments
	Busy     BusyMode     // for prompts that arrive while a turn runs; empty means BusyQueue
	Notify   NotifyMode
	Think    ThinkMode
	// Display applies to the whole chat. ductor uses the value of the chat's main topic and ignores those of other
	// topics.
	Display DisplayMode
}

// Setting names one of the Settings.
type Setting string

// Values of type Setting.
const (
	SettingBusy    Setting = "busy"
	SettingNotify  Setting = "notify"
	SettingThink   Setting = "think"
	SettingDisplay Setting = "display"
)

// Words lists the values of a setting from which users can choose.
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

// Word returns the current value of a setting, as one of the words that Setting.Words lists.
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

// Set changes a setting to one of the words that Setting.Words lists.
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

// NotifyMode selects which turns notify the user when they end.
type NotifyMode string

// NotifyMode values.
const (
	NotifyAlways NotifyMode = "always"
	NotifyLong   NotifyMode = "long" // only turns that took longer than LongTurn
	NotifyNever  NotifyMode = "never"
)

// ThinkMode selects whether the chat shows the reasoning of models.
type ThinkMode string

// ThinkMode values.
const (
	ThinkOn  ThinkMode = "on"
	ThinkOff ThinkMode = "off"
)

// DisplayMode selects whether ductor sends rich messages to a chat. Users choose it, because Telegram does not report
// whether their apps can show rich messages.
type DisplayMode string

// DisplayMode values.
const (
	DisplayRich  DisplayMode = "rich"  // the chat shows rich messages
	DisplayPlain DisplayMode = "plain" // the chat cannot show rich messages, or the user does not want them
	DisplayAsk   DisplayMode = "ask"   // ductor has not asked a user yet
	DisplayAsked DisplayMode = "asked" // ductor asked, but no user has answered yet; works like DisplayPlain
)

// NoRole is the value of Conversation.Role if a user has chosen to use no role. An empty Role means the configured
// default role.
const NoRole = "(none)"

// Default and maximum time of a bypass that a user starts in a chat.
const (
	DefaultBypass = time.Hour
	MostBypass    = 24 * time.Hour
)

// BusyMode selects how ductor handles a prompt that arrives while a turn runs.
type BusyMode string

// BusyMode values. BusyQueue is the default. If ductor cannot apply one of the other modes, it queues the prompt.
const (
	BusyQueue     BusyMode = "queue"     // the prompt waits until the turn ends
	BusySteer     BusyMode = "steer"     // ductor adds the prompt to the running turn
	BusyInterrupt BusyMode = "interrupt" // ductor aborts the running turn
)

// During returns the mode for a prompt that arrives during a turn. current is the session of the conversation.
func (m BusyMode) During(running Turn, p Prompt, current SessionID) BusyMode {
	switch {
	case !p.Rights.OfChat(): // such a prompt must not abort or change the turn of another user
		return BusyQueue
	case p.PartOf != 0 && p.PartOf == running.Prompt.Message:
		return BusySteer
	case current != running.Session && (m == BusySteer || !running.IsSeparate()):
		// The user has sent /new or changed the project, so the prompt belongs to another session than the running turn
		// and has to wait for that turn. A separate turn, such as a job, always has another session: it does not get
		// here with BusyInterrupt, which aborts it.
		return BusyQueue
	case m == BusySteer && !running.AcceptsMessages():
		return BusyQueue
	}
	return m
}

// Project is a directory in which agents work. Users choose it by its name.
type Project struct{ Name, Dir string }

// Worktree is a checkout of a branch of a project.
type Worktree struct {
	Dir    string
	Branch string // empty for none
	Main   bool   // the project's main worktree, which ductor never removes
	Merged bool   // all commits of the branch are also in the branch of the main worktree
	Gone   bool   // the directory no longer exists
}

// Contains reports whether path is the worktree's directory or lies below it.
func (w Worktree) Contains(path string) bool { return cli.Lies(path, w.Dir) }

// Projects lets users open projects and worktrees. It returns only directories inside the configured roots. Package
// orchestrator/projects implements it.
type Projects interface {
	// Projects lists the configured projects and the repositories inside the roots, sorted by name.
	Projects(ctx context.Context) ([]Project, error)
	// OpenProject makes a project the working directory of a conversation. If branch is not empty, it uses a worktree
	// with that branch, and creates the worktree if needed. It may return ErrNoProject, ErrBadBranch or
	// ErrNoRepository.
	OpenProject(ctx context.Context, by Press, name, branch string) (dir string, err error)
	// Worktrees lists the worktrees of the conversation's repository, or returns ErrNoRepository.
	Worktrees(ctx context.Context, in ConversationID) ([]Worktree, error)
	// OpenWorktree makes one of the Worktrees the working directory of the conversation, or returns ErrNoProject.
	OpenWorktree(ctx context.Context, by Press, dir string) error
	// RemoveWorktree removes one of the Worktrees, but not its branch. If the conversation works in this worktree,
	// RemoveWorktree makes the main worktree the conversation's directory. It returns one of these errors:
	//   - ErrDirtyWorktree: the worktree has uncommitted changes or submodules, and the caller passes KeepChanges
	//   - ErrStillOpen: a turn of the conversation runs in the worktree
	//   - ErrNoProject: the worktree does not exist
	RemoveWorktree(ctx context.Context, by Press, dir string, changes Changes) error
}

// Changes selects whether uncommitted changes may be lost.
type Changes string

// Changes values.
const (
	KeepChanges Changes = ""
	DropChanges Changes = "drop"
)
