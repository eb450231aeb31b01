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

// Agent names a dialect, such as "claude" or "codex".
type Agent string

// Conversation is the opaque key of the chat a turn belongs to. Equal keys never run two turns at once.
type Conversation string

// TurnID names one turn. It is unique for the life of the database.
type TurnID string

// AgentSessionID is an agent's own name for a session: Claude's session id, Codex's thread id.
type AgentSessionID string

// ModelID is a model's name as its agent takes it. Empty means the agent's own default.
type ModelID string

// Effort is a reasoning level in the agent's own vocabulary, such as "high". Empty means the model's default.
type Effort string

// PermissionMode says what an agent may do without being asked.
type PermissionMode string

// The permission modes, from most careful to least. Ask is the default.
const (
	Ask         PermissionMode = "ask"          // anything that writes or runs is asked for
	AcceptEdits PermissionMode = "accept-edits" // edits inside the working directory go through
	Plan        PermissionMode = "plan"         // read and plan only
	Auto        PermissionMode = "auto"         // the agent's own judgement
	Bypass      PermissionMode = "bypass"       // everything goes through
)

// PermissionModes lists every mode, most careful first.
func PermissionModes() []PermissionMode {
	return []PermissionMode{Plan, Ask, AcceptEdits, Auto, Bypass}
}

// Image is a picture that goes with a prompt.
type Image struct {
	Path string // absolute path of a readable file
	MIME string // "image/png", "image/jpeg", "image/gif" or "image/webp"
}

// Request is one turn as the domain asks for it. A provider uses the same Request to open a session and
// to run a turn in it; which fields bind a session is the provider's to say (Session.Fits).
type Request struct {
	Turn         TurnID
	Conversation Conversation
	Lang         lang.Language // of what the turn tells its users
	ChatID       int64         // shown to the agent as DUCTOR_CHAT_ID

	Prompt       string // reaches the model as text, whatever it begins with, unless Task says otherwise
	Task         Task
	Images       []Image // sent along with the prompt
	SystemPrompt string  // replaces the agent's own, when set
	AppendPrompt string  // is added to the agent's own, when set

	Model  ModelID
	Effort Effort

	// Sandbox is the place it runs in, and never in another; empty is this host.
	Sandbox Sandbox
	Session string   // ductor's own name of the session, which names its home where sessions have their own
	Home    string   // absolute HOME in the place; empty: the place's own. The Service sets it.
	Files   []string // paths on this host that the prompt names, Images included

	Dir     string   // working directory, absolute, in the place
	AddDirs []string // further directories the agent may use, absolute; of this host, and brought to a sandbox

	// Project says what becomes of the settings that Dir brings along; see ProjectReader.
	Project ProjectSettings

	Permission PermissionMode
	// Attended says that somebody answers when the agent asks. Else everything it would ask for is denied.
	Attended     bool
	AllowedTools []string // go through without asking; in generic names, or the agent's own
	// ToolLists limit the tools together. Tools is what they mean in the agent's own words; the Service sets it, and
	// puts AllowedTools into those words too.
	ToolLists []ToolList
	Tools     ToolList
	Servers   []ToolServer

	Budget  float64       // US dollars that the turn may cost, for agents that hold to it; 0 is no limit
	Timeout time.Duration // wall time at most; 0 is the service's limit
	Began   time.Time     // when a turn that is resumed began; zero for one that begins now

	Resume AgentSessionID // go on with this session

	// Started has it stored where the turn begins in a run: before its prompt leaves, and again whenever the Note changes. A
	// prompt is not sent when that fails. Nil stores nothing.
	Started func(ctx context.Context, start Start) error

	ExtraArgs []string          // appended to the agent's command line as they are
	Env       map[string]string // added to the child's environment
}

// Task says what a prompt is to its agent. An agent that cannot do it refuses the turn before it did anything, with a
// Failure that is errors.ErrUnsupported.
type Task string

// The tasks.
const (
	TaskPrompt  Task = ""        // text
	TaskCompact Task = "compact" // the agent is to shorten its context; the prompt says what to keep, and may be empty
	TaskCommand Task = "command" // the prompt is a command of the agent's own, as AgentCommand.Line writes it
)

// CannotCompact is the refusal of an agent that does not shorten its context when it is asked to.
func CannotCompact(agent Agent) *Failure {
	f := Failf(Refused, agent, "it does not shorten its context when it is asked to")
	f.Cause = errors.ErrUnsupported
	return f
}

// Unsendable says why no agent can be sent the prompt; nil if one can. A text that JSON could only carry altered is none.
func (r Request) Unsendable(agent Agent) *Failure {
	switch {
	case !utf8.ValidString(r.Prompt):
		return Failf(Refused, agent, "the message holds bytes that are no text")
	case strings.TrimSpace(r.Prompt) == "" && len(r.Images) == 0 && r.Task != TaskCompact:
		return Failf(Refused, agent, "the message is empty")
	}
	return nil
}

// WithoutPictures returns the warning that an agent gets no pictures. It reads where they are: the prompt names their files.
func (r Request) WithoutPictures(agent Agent) Status {
	return Status{Kind: StatusWarning, Detail: r.Lang.Printer().Text("failure.no-pictures", agent.Name())}
}

// PerhapsWithoutPictures returns the warning that the model may get no pictures, since the agent does not say whether its model reads them.
func (r Request) PerhapsWithoutPictures(agent Agent) Status {
	return Status{Kind: StatusWarning, Detail: r.Lang.Printer().Text("failure.perhaps-no-pictures", agent.Name())}
}

// Instructions gives the system prompts as the beginning of the prompt, for an agent that takes them nowhere else.
func (r Request) Instructions() string {
	text := ""
	for _, part := range []string{r.SystemPrompt, r.AppendPrompt} {
		if part != "" {
			text += "<instructions>\n" + part + "\n</instructions>\n\n"
		}
	}
	return text
}

// Sandbox names a place agents run in that is not this host. Empty is this host. One that a conversation has for itself
// is called NAME/CONVERSATION.
type Sandbox string

// For gives the part of a sandbox that a conversation has for itself.
func (s Sandbox) For(c Conversation) Sandbox { return s + "/" + Sandbox(c) }

// Name is how users know the sandbox, whichever conversation has a part of it.
func (s Sandbox) Name() string {
	name, _, _ := strings.Cut(string(s), "/")
	return name
}

// Alone is the conversation that has the sandbox for itself; empty if all share it.
func (s Sandbox) Alone() Conversation {
	_, alone, _ := strings.Cut(string(s), "/")
	return Conversation(alone)
}

// Mode says how a session talks to its agent.
type Mode string

// The modes. A provider supports OneShot, Live or both.
const (
	Live    Mode = "live"     // one process, many turns
	OneShot Mode = "one-shot" // a process per turn
)

// ToolList limits which tools an agent uses. Its names are generic ("shell", "mcp:github") or the agent's own; package
// tools gives it in the agent's own words, in which only a server keeps its generic name.
type ToolList struct {
	Only   []string // the only tools there are; empty: all
	Denied []string // never used
}

// Empty says whether the list limits nothing.
func (l ToolList) Empty() bool { return len(l.Only)+len(l.Denied) == 0 }

// Equal says whether two lists are the same.
func (l ToolList) Equal(other ToolList) bool {
	return slices.Equal(l.Only, other.Only) && slices.Equal(l.Denied, other.Denied)
}

// Permits says whether a tool that an agent asks for by its name may be used, for a list in the agent's own words. A rule
// such as "Bash(git push *)" is the agent's to hold.
func (l ToolList) Permits(tool string) bool {
	is := func(name string) bool { return name == tool || ofServer(name, tool) }
	return !slices.ContainsFunc(l.Denied, is) && (len(l.Only) == 0 || slices.ContainsFunc(l.Only, is))
}

// NamedServer is the MCP server that a generic name such as "mcp:github" means.
func NamedServer(name string) (server string, ok bool) { return strings.CutPrefix(name, "mcp:") }

// Servers are the MCP servers among names, and the rest of them.
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

// ofServer says whether a tool is one of the server that a generic name means, by any of the ways in which agents name it.
func ofServer(name, tool string) bool {
	server, ok := NamedServer(name)
	if !ok || server == "" {
		return false
	}
	return tool == server || slices.ContainsFunc(serverPrefixes(server), func(prefix string) bool { return strings.HasPrefix(tool, prefix) })
}
