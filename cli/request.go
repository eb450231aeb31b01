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

// Conversation is the opaque key of a turn's chat. Two turns with the same key never run at the same time.
type Conversation string

// TurnID identifies one turn. It is unique as long as the database exists.
type TurnID string

// AgentSessionID is an agent's own ID of a session: Claude's session ID, Codex's thread ID.
type AgentSessionID string

// ModelID is a model's name in the form that its agent accepts. Empty means the agent's default.
type ModelID string

// Effort is a reasoning level in the agent's own vocabulary, such as "high". Empty means the model's default.
type Effort string

// PermissionMode determines which actions an agent may take without asking.
type PermissionMode string

// The permission modes, from most careful to least. Ask is the default.
const (
	Ask         PermissionMode = "ask"          // the agent asks before it writes or runs anything
	AcceptEdits PermissionMode = "accept-edits" // edits inside the working directory are allowed
	Plan        PermissionMode = "plan"         // read and plan only
	Auto        PermissionMode = "auto"         // the agent decides
	Bypass      PermissionMode = "bypass"       // everything is allowed
)

// PermissionModes lists every mode, most careful first.
func PermissionModes() []PermissionMode {
	return []PermissionMode{Plan, Ask, AcceptEdits, Auto, Bypass}
}

// Image is a picture in a prompt.
type Image struct {
	Path string // absolute path of a readable file
	MIME string // "image/png", "image/jpeg", "image/gif" or "image/webp"
}

// Request is one turn as the domain requests it. A provider uses the same Request to open a session and to run a turn
// in it. The provider defines which fields bind a session (Session.Fits).
type Request struct {
	Turn         TurnID
	Conversation Conversation
	Lang         lang.Language // of messages to the turn's users
	ChatID       int64         // the agent sees it as DUCTOR_CHAT_ID

	Prompt       string // the model reads it as text, whatever it begins with, unless Task is set
	Task         Task
	Images       []Image // sent with the prompt
	SystemPrompt string  // replaces the agent's own, if set
	AppendPrompt string  // appended to the agent's own, if set

	Model    ModelID
	Effort   Effort
	Accounts Accounts // the log-in that each agent uses

	// Sandbox is the environment in which the turn runs. The turn runs in no other environment. Empty means this host.
	Sandbox Sandbox
	Session string   // ductor's own ID of the session, which names its home if sessions have their own
	Home    string   // absolute HOME in the environment; empty: the environment's own. The Service sets it.
	Files   []string // paths on this host that the prompt names, Images included

	Dir     string   // working directory, absolute, in the environment
	AddDirs []string // additional directories for the agent, absolute; of this host, and copied to a sandbox

	// Project determines whether the agent may use the settings in Dir; see ProjectReader.
	Project ProjectSettings

	Permission PermissionMode
	// TextOnly is set for a question of ductor itself that asks only for text. It also runs if nothing holds the agent
	// to Permission; see ModeHolder. ductor still decides by Permission what the agent asks for.
	TextOnly bool
	// Attended is set if a user can answer the agent's requests. Otherwise all requests are denied.
	Attended     bool
	AllowedTools []string // allowed without asking; generic names, or the agent's own
	// ToolLists limit the agent's tools together. Tools is their combination in the agent's own words. The Service sets
	// Tools, and also translates AllowedTools into those words.
	ToolLists []ToolList
	Tools     ToolList
	Servers   []ToolServer
	Absent    []AbsentServer // configured servers that are not in Servers

	// MaxTurns limits the answers of the model in this turn. 0 means no limit. Agents that do not support it refuse the
	// turn; see tools.LimitsTurns.
	MaxTurns int
	Budget   float64       // the most US dollars that the turn may cost, for agents that support it; 0 is no limit
	Timeout  time.Duration // limit of wall time; 0 is the service's limit
	Began    time.Time     // when a resumed turn started; zero for a new one

	Resume AgentSessionID // the session to continue

	// Started stores the position in the run at which the turn starts. The provider calls it before it sends the
	// prompt, and again whenever the Note changes. If the first call fails, the provider does not send the prompt. If
	// Started is nil, nothing is stored.
	Started func(ctx context.Context, start Start) error

	ExtraArgs []string          // appended unchanged to the agent's command line
	Env       map[string]string // added to the child's environment
}

// Task is the kind of a prompt. If an agent does not support it, it refuses the turn before it does anything, with a
// Failure that matches errors.ErrUnsupported.
type Task string

// The tasks.
const (
	TaskPrompt  Task = ""        // text
	TaskCompact Task = "compact" // the agent shortens its context; the prompt may name the parts to keep
	TaskCommand Task = "command" // the prompt is a command of the agent itself, in the form of AgentCommand.Line
)

// CannotCompact returns the refusal of an agent that cannot shorten its context on request.
func CannotCompact(agent Agent) *Failure {
	f := Failf(Refused, agent, "it does not shorten its context when it is asked to")
	f.Cause = errors.ErrUnsupported
	return f
}

// Unsendable returns a Failure if no agent can be sent the prompt. A prompt must have text or images. Its text must be
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

// WithoutPictures returns the warning that an agent gets no pictures. The agent can still read the files, because the
// prompt contains their paths.
func (r Request) WithoutPictures(agent Agent) Status {
	return Status{Kind: StatusWarning, Detail: r.Lang.Printer().Text("failure.no-pictures", agent.Name())}
}

// PerhapsWithoutPictures returns the warning that the model may not see the pictures, because the agent does not report
// whether its model can read them.
func (r Request) PerhapsWithoutPictures(agent Agent) Status {
	return Status{Kind: StatusWarning, Detail: r.Lang.Printer().Text("failure.perhaps-no-pictures", agent.Name())}
}

// WithoutServer returns the warning that an agent does not support this kind of server.
func (r Request) WithoutServer(agent Agent, s ToolServer) Status {
	in := r.Lang.Printer()
	why := in.Text("servers.not-taken", agent.Name())
	return Status{Kind: StatusWarning, Detail: in.Text("servers.without", s.Name, why)}
}

// Instructions returns the system prompts as the start of the prompt, for an agent that accepts them in no other place.
func (r Request) Instructions() string {
	text := ""
	for _, part := range []string{r.SystemPrompt, r.AppendPrompt} {
		if part != "" {
			text += "<instructions>\n" + part + "\n</instructions>\n\n"
		}
	}
	return text
}

// Sandbox is the name of an environment of agents other than this host. Empty means this host. If a part of a sandbox
// belongs to only one conversation, its name is NAME/CONVERSATION.
type Sandbox string

// For returns the conversation's own part of a sandbox.
func (s Sandbox) For(c Conversation) Sandbox { return s + "/" + Sandbox(c) }

// Name returns the sandbox's name in the configuration. If the sandbox is one conversation's part of a configured one,
// Name omits the conversation.
func (s Sandbox) Name() string {
	name, _, _ := strings.Cut(string(s), "/")
	return name
}

// Alone returns the conversation that alone owns the sandbox. It returns "" if all conversations share the sandbox.
func (s Sandbox) Alone() Conversation {
	_, alone, _ := strings.Cut(string(s), "/")
	return Conversation(alone)
}

// Mode is the way a session communicates with its agent.
type Mode string

// The modes. A provider supports OneShot, Live or both.
const (
	Live    Mode = "live"     // one process, many turns
	OneShot Mode = "one-shot" // a process per turn
)

// ToolList limits the tools of an agent. Its names are generic ("shell", "mcp:github") or the agent's own. Package
// tools translates a list into the agent's own words. In a translated list, only MCP servers still have generic names.
type ToolList struct {
	Only   []string `toml:"tools" yaml:"tools"`               // the only permitted tools; empty: all
	Denied []string `toml:"denied_tools" yaml:"denied_tools"` // never used
}

// Empty reports whether the list limits nothing.
func (l ToolList) Empty() bool { return len(l.Only)+len(l.Denied) == 0 }

// Equal reports whether two lists are the same.
func (l ToolList) Equal(other ToolList) bool {
	return slices.Equal(l.Only, other.Only) && slices.Equal(l.Denied, other.Denied)
}

// Permits reports whether a list in the agent's own words permits a tool. tool is the name that the agent uses in
// requests. Permits ignores rules such as "Bash(git push *)", because the agent itself enforces them.
func (l ToolList) Permits(tool string) bool {
	is := func(name string) bool { return name == tool || ofServer(name, tool) }
	return !slices.ContainsFunc(l.Denied, is) && (len(l.Only) == 0 || slices.ContainsFunc(l.Only, is))
}

// NamedServer returns the MCP server of a generic name such as "mcp:github".
func NamedServer(name string) (server string, ok bool) { return strings.CutPrefix(name, "mcp:") }

// Servers splits names into MCP servers and all other names.
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

// ofServer reports whether a tool belongs to an MCP server. name is the generic name of the server; tool may have any
// of the notations that agents use.
func ofServer(name, tool string) bool {
	server, ok := NamedServer(name)
	if !ok || server == "" {
		return false
	}
	return tool == server || slices.ContainsFunc(serverPrefixes(server),
		func(prefix string) bool { return strings.HasPrefix(tool, prefix) })
}
