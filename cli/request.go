package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ductor/lang"
)

// Agent is the name of a dialect, such as "claude" or "codex".
type Agent string

// Conversation is the opaque key of the conversation of a turn. ductor never runs two turns of a conversation at the
// same time.
type Conversation string

// TurnID identifies one turn. It is unique as long as the database exists.
type TurnID string

// AgentSessionID is an agent's own ID of a session: Claude's session ID, Codex's thread ID.
type AgentSessionID string

// ModelID is a model's name in the form that its agent accepts. Empty means the agent's default.
type ModelID string

// Effort is a reasoning level in the agent's own terms, such as "high". Empty means the model's default.
type Effort string

// PermissionMode determines which actions an agent may take without asking.
type PermissionMode string

// PermissionMode values, from most to least careful. Ask is the default.
const (
	Ask         PermissionMode = "ask"          // the agent asks before it writes or runs anything
	AcceptEdits PermissionMode = "accept-edits" // edits inside the working directory are allowed
	Plan        PermissionMode = "plan"         // read and plan only
	Auto        PermissionMode = "auto"         // the agent decides
	Bypass      PermissionMode = "bypass"       // everything is allowed
)

// PermissionModes lists every mode, from most to least careful.
func PermissionModes() []PermissionMode {
	return []PermissionMode{Plan, Ask, AcceptEdits, Auto, Bypass}
}

// Image is a picture in a prompt.
type Image struct {
	Path string // absolute path of a readable file
	MIME string // "image/png", "image/jpeg", "image/gif" or "image/webp"
}

// Request describes one turn. ductor passes the same Request to Provider.Open and to Session.Turn. A provider decides
// which fields a session cannot change later; see Session.Fits.
type Request struct {
	Turn         TurnID
	Conversation Conversation
	Lang         lang.Language // language of messages to the turn's users
	ChatID       int64         // the agent sees it as DUCTOR_CHAT_ID

	Prompt       string // the model reads it as text, even if it looks like a command, unless Task is set
	Task         Task
	Images       []Image // sent with the prompt
	SystemPrompt string  // replaces the agent's own system prompt, if set
	AppendPrompt string  // appended to the agent's own system prompt, if set

	Model    ModelID
	Effort   Effort
	Accounts Accounts // the log-in that each agent uses

	// Sandbox is the only environment in which the turn may run. Empty means this host.
	Sandbox Sandbox
	Session string   // ductor's own ID of the session; if sessions have their own homes, the name of the home
	Home    string   // absolute HOME in the environment; empty for the environment's own; set by the Service
	Files   []string // paths on this host that the prompt names, including Images

	Dir     string   // working directory in the environment, absolute
	AddDirs []string // additional directories of this host for the agent, absolute; copied into a sandbox

	// Project determines whether the agent may use the settings in Dir; see ProjectReader.
	Project ProjectSettings

	Permission PermissionMode
	// TextOnly is set for ductor's own questions, which need only a text as the answer. ductor sends such a request even
	// to an agent that does not enforce Permission; see ModeHolder. If the agent asks for an approval, Permission
	// decides.
	TextOnly bool
	// Attended is set if a user can answer the agent's requests. Otherwise ductor denies all of them.
	Attended     bool
	AllowedTools []string // allowed without asking; generic names or the agent's own
	// ToolLists limit the agent's tools. The Service combines them into Tools, in the agent's own words. It also
	// translates AllowedTools into these words.
	ToolLists []ToolList
	Tools     ToolList
	Servers   []ToolServer
	Absent    []AbsentServer // configured servers that are not in Servers

	// MaxTurns limits the model's answers in this turn. 0 means no limit. Agents without such a limit refuse the turn;
	// see tools.LimitsTurns.
	MaxTurns int
	Budget   float64       // limit in US dollars, for agents that support it; 0 means no limit
	Timeout  time.Duration // limit of wall-clock time; 0 means the service's limit
	Began    time.Time     // when a resumed turn started; zero for a new one

	Resume AgentSessionID // the session to continue

	// Started stores the position in the run at which the turn starts. The provider calls it before it sends the
	// prompt, and again whenever the Note changes. If the first call fails, the provider does not send the prompt. If
	// Started is nil, the position is not stored.
	Started func(ctx context.Context, start Start) error

	ExtraArgs []string          // appended unchanged to the agent's command line
	Env       map[string]string // added to the child's environment
}

// Task is the kind of a prompt. An agent that does not support the Task refuses the turn at once, with a Failure that
// matches errors.ErrUnsupported.
type Task string

// Task values.
const (
	TaskPrompt  Task = ""        // text
	TaskCompact Task = "compact" // the agent shortens its context; the prompt may name the parts to keep
	TaskCommand Task = "command" // the prompt is a command of the agent itself, in the form of AgentCommand.Line
)

// CannotCompact returns the failure of a turn for an agent that cannot shorten its context on request.
func CannotCompact(agent Agent) *Failure {
	f := Failf(Refused, agent, "it does not shorten its context when it is asked to")
	f.Cause = errors.ErrUnsupported
	return f
}

// Unsendable returns a Failure if no agent can receive the prompt. A prompt must have text or images. Its text must be
// valid UTF-8, because JSON would silently change other text.
func (r Request) Unsendable(agent Agent) *Failure {
	switch {
	case !utf8.ValidString(r.Prompt):
		return Failf(Refused, agent, "the message holds bytes that are no text")
	case strings.TrimSpace(r.Prompt) == "" && len(r.Images) == 0 && r.Task != TaskCompact:
		return Failf(Refused, agent, "the message is empty")
	}
	return nil
}

// WithoutPictures returns the warning that the agent gets the pictures only as files: the prompt contains their paths.
func (r Request) WithoutPictures(agent Agent) Status {
	return Status{Kind: StatusWarning, Detail: r.Lang.Printer().Text("failure.no-pictures", agent.Name())}
}

// PerhapsWithoutPictures returns the warning that the model may be unable to see the pictures. It is for agents that do
// not report whether their model supports pictures.
func (r Request) PerhapsWithoutPictures(agent Agent) Status {
	return Status{Kind: StatusWarning, Detail: r.Lang.Printer().Text("failure.perhaps-no-pictures", agent.Name())}
}

// WithoutServer returns the warning that the agent does not support this kind of tool server.
func (r Request) WithoutServer(agent Agent, s ToolServer) Status {
	in := r.Lang.Printer()
	why := in.Text("servers.not-taken", agent.Name())
	return Status{Kind: StatusWarning, Detail: in.Text("servers.without", s.Name, why)}
}

// Instructions returns the system prompts of r as a prefix for the prompt, for agents without a separate system prompt.
func (r Request) Instructions() string {
	text := ""
	for _, part := range []string{r.SystemPrompt, r.AppendPrompt} {
		if part != "" {
			text += "<instructions>\n" + part + "\n</instructions>\n\n"
		}
	}
	return text
}

// Sandbox is the name of an environment other than this host. Empty means this host. The part of a sandbox that belongs
// to a single conversation is named NAME/CONVERSATION.
type Sandbox string

// For returns the conversation's own part of a sandbox.
func (s Sandbox) For(c Conversation) Sandbox { return s + "/" + Sandbox(c) }

// Name returns the sandbox's name in the configuration, without the conversation.
func (s Sandbox) Name() string {
	name, _, _ := strings.Cut(string(s), "/")
	return name
}

// Alone returns the conversation to which the sandbox belongs, or "" if conversations share it.
func (s Sandbox) Alone() Conversation {
	_, alone, _ := strings.Cut(string(s), "/")
	return Conversation(alone)
}

// Mode determines how a session communicates with its agent.
type Mode string

// Mode values. A provider supports at least one of them.
const (
	Live    Mode = "live"     // one process for many turns
	OneShot Mode = "one-shot" // one process for each turn
)

// ToolList limits the tools of an agent. Its names are generic ("shell", "mcp:github") or the agent's own. Package
// cli/tools translates generic names into the agent's own, except for MCP servers.
type ToolList struct {
	Only   []string `toml:"tools" yaml:"tools"`               // the only permitted tools; empty: all
	Denied []string `toml:"denied_tools" yaml:"denied_tools"` // never used
}

// Empty reports whether the list has no limits.
func (l ToolList) Empty() bool { return len(l.Only)+len(l.Denied) == 0 }

// Equal reports whether two lists are the same.
func (l ToolList) Equal(other ToolList) bool {
	return slices.Equal(l.Only, other.Only) && slices.Equal(l.Denied, other.Denied)
}

// Permits reports whether the list permits a tool. The list and tool use the agent's own names of tools. Permits
// ignores rules such as "Bash(git push *)", because the agent itself enforces them.
func (l ToolList) Permits(tool string) bool {
	is := func(name string) bool { return name == tool || ofServer(name, tool) }
	return !slices.ContainsFunc(l.Denied, is) && (len(l.Only) == 0 || slices.ContainsFunc(l.Only, is))
}

// NamedServer returns the MCP server in a generic name such as "mcp:github".
func NamedServer(name string) (server string, ok bool) { return strings.CutPrefix(name, "mcp:") }

// Servers splits names into the names of MCP servers, without prefix, and all other names.
func Servers(names []string) (servers, rest []string) {
	for _, name := range names {
		if server, ok := NamedServer(name); ok {
			servers = append(servers, server)
		} else {
			rest = append(rest, name)
		}
	}
	return servers, rest
}

// ofServer reports whether a tool belongs to an MCP server. name is the generic name of the server. tool may have the
// notation of any agent.
func ofServer(name, tool string) bool {
	server, ok := NamedServer(name)
	if !ok || server == "" {
		return false
	}
	return tool == server || slices.ContainsFunc(serverPrefixes(server),
		func(prefix string) bool { return strings.HasPrefix(tool, prefix) })
}
