package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ductor/internal/rooted"
	"ductor/lang"
)

// Agent is the name of an agent, such as "claude" or "codex".
type Agent string

// Conversation identifies the conversation to which a turn belongs. Only the package that creates a Conversation knows
// its format. ductor never runs two turns of a conversation at the same time.
type Conversation string

// TurnID identifies a turn. ductor never uses an ID twice in the same database.
type TurnID string

// AgentSessionID is an agent's own ID of a session, such as Claude's session ID or Codex's thread ID.
type AgentSessionID string

// ModelID is the name of a model as its agent expects it. Empty means the agent's default.
type ModelID string

// Effort is a level of reasoning in the agent's own terms, such as "high". Empty means the model's default.
type Effort string

// PermissionMode determines which actions an agent may take without asking.
type PermissionMode string

// PermissionMode values, from most to least careful. Ask is the default.
const (
	Ask         PermissionMode = "ask"          // the agent asks before it writes or runs anything
	AcceptEdits PermissionMode = "accept-edits" // edits inside the working directory need no approval
	Plan        PermissionMode = "plan"         // the agent only reads files and makes a plan
	Auto        PermissionMode = "auto"         // the agent decides
	Bypass      PermissionMode = "bypass"       // the agent may do everything
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

// Base64 returns the content of the file in base64. It returns an error if the file has more than limit bytes. An agent
// that may write to the folder can replace the file: Base64 follows no link and waits for no pipe.
func (i Image) Base64(limit int) (string, error) {
	data, err := rooted.Read(filepath.Dir(i.Path), filepath.Base(i.Path), int64(limit))
	var refused *rooted.Error
	if errors.As(err, &refused) && refused.Refusal == rooted.TooLarge {
		err = fmt.Errorf("the image has more than %d MB", limit>>20)
	}
	return base64.StdEncoding.EncodeToString(data), err
}

// Request describes one turn. ductor passes the same Request to Provider.Open and to Session.Turn. Session.Fits
// determines which fields may change between the turns of a session.
type Request struct {
	Turn         TurnID
	Conversation Conversation
	Lang         lang.Language // language of messages to users
	ChatID       int64         // ID of the chat; the agent sees it in the environment variable ChatIDVar

	Prompt       string // plain text for the model, even if it looks like a command; see Task for exceptions
	Task         Task
	Images       []Image // pictures that are sent with the prompt
	SystemPrompt string  // replaces the agent's own system prompt, if set
	AppendPrompt string  // appended to the agent's own system prompt, if set

	Model    ModelID
	Effort   Effort
	Accounts Accounts // the log-in that each agent uses

	// Sandbox names the environment in which the turn must run. Empty means this host.
	Sandbox Sandbox
	Session string   // ductor's own ID of the session, and the name of its home if sessions have their own homes
	Home    string   // absolute HOME in the environment, set by the Service; empty means the environment's own
	Files   []string // paths on this host that the prompt mentions, including Images

	Dir     string   // absolute path of the working directory in the environment
	AddDirs []string // absolute paths of further directories on this host; ductor copies them into a sandbox

	// Project determines whether the agent may use the project settings in Dir; see ProjectReader.
	Project ProjectSettings

	Permission PermissionMode
	// TextOnly is set for ductor's own questions to a model, which need only a text as the answer. ductor sends such a
	// request even to an agent that may ignore Permission; see ModeHolder. If the agent asks for an approval
	// nevertheless, ductor decides according to Permission.
	TextOnly bool
	// Attended is set if a user can answer the agent's requests. Otherwise ductor denies all of them.
	Attended bool
	// AllowedTools lists tools that need no approval by a user. The names are generic or the agent's own. ductor tells
	// the agent only about the harmless ones; see tools.Limit. If the agent asks to use another tool in the list,
	// ductor checks what the tool would do, and then allows the request.
	AllowedTools []string
	// ToolLists limit the tools that the agent may use. The Service combines them into Tools, and replaces generic
	// names of tools by the agent's own.
	ToolLists []ToolList
	Tools     ToolList
	Servers   []ToolServer
	Absent    []AbsentServer // configured servers that the agent cannot use

	// MaxTurns limits how often the model may answer in this turn. 0 means no limit. Agents that do not support the
	// limit refuse the turn; see tools.LimitsTurns.
	MaxTurns int
	Budget   float64       // limit in US dollars, for agents that support it; 0 means no limit
	Timeout  time.Duration // limit of the turn's duration; 0 means the service's limit
	Began    time.Time     // when a resumed turn started; zero for a new turn

	Resume AgentSessionID // the session to continue

	// Started stores the position in the run at which the turn starts. The provider calls it before it sends the
	// prompt, and again whenever the Note changes. If the first call fails, the provider does not send the prompt. If
	// Started is nil, nothing is stored.
	Started func(ctx context.Context, start Start) error

	ExtraArgs []string          // appended unchanged to the agent's command line
	Env       map[string]string // added to the environment of the agent
}

// Task determines how an agent treats the prompt. An agent that does not support the Task refuses the turn at once,
// with a Failure that matches errors.ErrUnsupported.
type Task string

// Task values.
const (
	TaskPrompt  Task = ""        // the prompt is text for the model
	TaskCompact Task = "compact" // the agent shortens its context; the prompt may describe what to preserve
	TaskCommand Task = "command" // the prompt is a command of the agent itself, as AgentCommand.Line returns it
)

// CannotCompact returns the failure of a turn with TaskCompact for an agent that cannot shorten its context on request.
func CannotCompact(agent Agent) *Failure {
	f := Failf(Refused, agent, "it does not shorten its context when it is asked to")
	f.Cause = errors.ErrUnsupported
	return f
}

// Unsendable returns a Failure if ductor cannot send the prompt to any agent. A prompt must have text or images, unless
// the Task is TaskCompact. The prompt must be valid UTF-8, because JSON would silently change other text.
func (r Request) Unsendable(agent Agent) *Failure {
	switch {
	case !utf8.ValidString(r.Prompt):
		return Failf(Refused, agent, "the message holds bytes that are no text")
	case strings.TrimSpace(r.Prompt) == "" && len(r.Images) == 0 && r.Task != TaskCompact:
		return Failf(Refused, agent, "the message is empty")
	}
	return nil
}

// WithoutPictures returns the warning that the model does not see the pictures. The prompt contains their paths, so the
// agent can still use them as files.
func (r Request) WithoutPictures(agent Agent) Status {
	return Status{Kind: StatusNotice, Detail: r.Lang.Printer().Text("failure.no-pictures", agent.Name())}
}

// PerhapsWithoutPictures returns the warning that the model may be unable to see the pictures. Providers use it if the
// agent does not report whether the model supports pictures.
func (r Request) PerhapsWithoutPictures(agent Agent) Status {
	return Status{Kind: StatusNotice, Detail: r.Lang.Printer().Text("failure.perhaps-no-pictures", agent.Name())}
}

// WithoutServer returns the warning that the agent does not support tool servers such as s.
func (r Request) WithoutServer(agent Agent, s ToolServer) Status {
	in := r.Lang.Printer()
	why := in.Text("servers.not-taken", agent.Name())
	return Status{Kind: StatusNotice, Detail: in.Text("servers.without", s.Name, why)}
}

// Instructions returns r's system prompts as text to put before the prompt, for agents that accept no system prompt.
func (r Request) Instructions() string {
	text := ""
	for _, part := range []string{r.SystemPrompt, r.AppendPrompt} {
		if part != "" {
			text += "<instructions>\n" + part + "\n</instructions>\n\n"
		}
	}
	return text
}

// Sandbox names an environment other than this host. Empty means this host. If a conversation has its own part of the
// sandbox, such as its own container, the name is NAME/CONVERSATION.
type Sandbox string

// For returns the name of the part of the sandbox that belongs only to c.
func (s Sandbox) For(c Conversation) Sandbox { return s + "/" + Sandbox(c) }

// Name returns the sandbox's name in the configuration.
func (s Sandbox) Name() string {
	name, _, _ := strings.Cut(string(s), "/")
	return name
}

// Alone returns the conversation that has this sandbox to itself, or "" if conversations share the sandbox.
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

// ToolList limits the tools that an agent may use. Its names are generic ("shell", "mcp:github") or the agent's own.
// Package cli/tools translates generic names into the agent's own, except those of MCP servers.
type ToolList struct {
	Only   []string `toml:"tools" yaml:"tools"`               // the only permitted tools; empty permits all
	Denied []string `toml:"denied_tools" yaml:"denied_tools"` // tools that are never permitted
}

// Empty reports whether the list permits all tools.
func (l ToolList) Empty() bool { return len(l.Only)+len(l.Denied) == 0 }

// Equal reports whether two lists are the same.
func (l ToolList) Equal(other ToolList) bool {
	return slices.Equal(l.Only, other.Only) && slices.Equal(l.Denied, other.Denied)
}

// Permits reports whether the list certainly permits a tool. tool and the list contain the agent's own names of tools.
// Permits ignores entries such as "Bash(git push *)", because the agent itself enforces them.
//
// If Permits and Forbids both return false, the tool's name does not reveal the tool's MCP server; see serversOf. Then
// only a user can decide.
func (l ToolList) Permits(tool string) bool {
	return !slices.ContainsFunc(l.Denied, func(name string) bool { return mayName(name, tool) }) &&
		(len(l.Only) == 0 || slices.ContainsFunc(l.Only, func(name string) bool { return names(name, tool) }))
}

// Forbids reports whether the list certainly forbids a tool.
func (l ToolList) Forbids(tool string) bool {
	return slices.ContainsFunc(l.Denied, func(name string) bool { return names(name, tool) }) ||
		len(l.Only) > 0 && !slices.ContainsFunc(l.Only, func(name string) bool { return mayName(name, tool) })
}

// NamedServer returns the name of the MCP server in a generic name such as "mcp:github".
func NamedServer(name string) (server string, ok bool) { return strings.CutPrefix(name, "mcp:") }

// Servers splits names: it returns the MCP servers, without the prefix "mcp:", and all other names.
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

// names reports whether a name in a ToolList certainly refers to a tool. The name "mcp:NAME" refers to all tools of the
// MCP server NAME.
func names(name, tool string) bool {
	return name == tool || mayName(name, tool) && len(serversOf(tool)) == 1
}

// mayName reports whether a name in a ToolList may refer to a tool.
func mayName(name, tool string) bool {
	server, ok := NamedServer(name)
	return name == tool || ok && slices.Contains(serversOf(tool), server)
}
