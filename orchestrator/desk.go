package orchestrator

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// Press is the press of a button. ductor stores Updates, the Telegram updates of the press, together with its effect,
// so that a repeated update has no second effect.
type Press struct {
	Conversation ConversationID
	Person       PersonID
	Role         UserRole
	Updates      []int64
	Arrived      time.Time // when ductor read the message that it handles as a press; zero for a button
}

// May reports whether the user has a right.
func (p Press) May(do Right) bool { return p.Role.May(do) }

// MayEnd reports whether the user may abort a turn or remove it from the queue.
func (p Press) MayEnd(t Turn) bool {
	own := t.Prompt.Person == p.Person && t.Prompt.Rights.Of == p.Role.OfTurns()
	return p.May(EndAny) || own && p.May(EndOwn)
}

// Precedes reports whether a turn is a prompt that came after the press. The IDs of updates usually ascend, but after a
// week without updates Telegram may continue at any number.
func (p Press) Precedes(t Turn) bool {
	of := t.Prompt.Updates
	return len(p.Updates) > 0 && len(of) > 0 && of[0] > p.Updates[0] && !t.Queued.Before(p.Arrived)
}

// Receipt reports how a prompt was accepted.
type Receipt struct {
	Turn  cli.TurnID // the new turn; for ActionDrop, the turn whose card loses the pressed button
	Ahead int        // turns before it, including the running turn; 0 means it runs now
	// Did is how ductor handled a prompt that arrived during a running turn. It queued the prompt, added it to that
	// turn, or aborted that turn.
	Did  BusyMode
	Full bool      // the queue was full: nothing was stored, and Turn is empty
	At   time.Time // when a job runs the prompt; zero without a job
}

// AbortReport reports the effect of an abort.
type AbortReport struct {
	Running bool // a turn was running
	Dropped int  // removed queued turns
	// Questions is the number of aborted questions to models outside of turns; see Consults.
	Questions int
	// Unshown is a finished turn whose answer the chat shows only in part; it may be empty.
	Unshown cli.TurnID
	// Stopping is the turn that was running, or nil.
	Stopping *Stopping
}

// Stopping is a turn that is being aborted.
type Stopping struct {
	// Over is closed when the chat shows the end of the turn, and all its processes are dead or could not be killed.
	Over <-chan struct{}
	// Alive names the processes of the turn that still run.
	Alive func(ctx context.Context) []cli.ProcessName
}

// RunningTurn is the running turn of a conversation.
type RunningTurn struct {
	Turn      cli.TurnID
	Title     string // first words of the prompt
	Prompt    string
	Message   int // the user's message with the prompt
	Started   time.Time
	Approvals int // number of open approvals
	Rights    Rights
}

// Subject describes the message of ductor that a user replies to. The zero value is a message without a turn.
type Subject struct {
	Said   bool   // the message is part of a turn's answer
	Here   bool   // the message belongs to the session of the next prompt
	Newest bool   // the message is the newest answer of that session
	Job    JobID  // the job whose report the message is; empty for none
	Title  string // title of the job
	Text   string // the whole answer
}

// Status describes the choices and the work of a conversation.
type Status struct {
	Conversation ConversationID
	Agent        cli.Agent
	Model        cli.ModelID
	Effort       cli.Effort
	Permission   cli.PermissionMode
	BypassUntil  time.Time // when a bypass that a user chose here ends; zero for none
	Dir          string
	Sandbox      cli.Sandbox // where the next turn runs; empty for this host
	Role         string
	Settings     Settings
	Session      Session // zero if none was started
	Running      *RunningTurn
	Queue        int        // number of waiting turns
	Live         cli.Living // running agents of all conversations
}

// Load counts the waiting work of all conversations.
type Load struct {
	Queued, Running  int // number of turns
	Approvals        int // open approvals and questions to users
	Jobs, JobsPaused int // including the jobs of webhooks
	JobRuns          int // runs of jobs that have not ended
}

// Alert is a lasting problem of the machine.
type Alert struct {
	Kind, Key string
	Since     time.Time
	Over      string // the message to the owner after the problem has ended
}

// Role is a named system prompt. Its agent and model apply unless the conversation chose others.
type Role struct {
	Prompt string       `toml:"prompt"`
	Append bool         `toml:"append" yaml:"append" default:"true"` // false replaces the agent's own system prompt
	Agent  cli.Agent    `toml:"agent" yaml:"agent"`                  // empty means the default agent
	Model  cli.ModelID  `toml:"model" yaml:"model"`                  // empty means the agent's default model
	Tools  cli.ToolList `toml:",inline" yaml:",inline"`
	Bounds Bounds       `toml:",inline" yaml:",inline"`
}

// Bounds are settings of the owner's configuration for turns with a role or in a project. MaxTurns limits turns; the
// other settings allow more.
type Bounds struct {
	AllowedTools []string `toml:"allowed_tools" yaml:"allowed_tools"` // tools that agents may use without asking
	// MaxTurns limits the answers of the model in a turn. 0 means no limit.
	MaxTurns int      `toml:"max_turns" yaml:"max_turns" check:"0..1000"`
	AddDirs  []string `toml:"add_dirs" yaml:"add_dirs" check:"path"` // further directories of agents; absolute
	MCP      []string `toml:"mcp" yaml:"mcp"`                        // the owner's MCP servers; empty means all
}

// NoServers in Bounds.MCP means that turns use none of the owner's servers.
const NoServers = "none"

// With combines b and other for a turn to which both apply.
func (b Bounds) With(other Bounds) Bounds {
	both := Bounds{
		AllowedTools: slices.Concat(b.AllowedTools, other.AllowedTools), MaxTurns: b.MaxTurns,
		AddDirs: slices.Concat(b.AddDirs, other.AddDirs), MCP: b.MCP,
	}
	if other.MaxTurns > 0 && (b.MaxTurns == 0 || other.MaxTurns < b.MaxTurns) {
		both.MaxTurns = other.MaxTurns
	}
	switch {
	case len(b.MCP) == 0:
		both.MCP = other.MCP
	case len(other.MCP) > 0:
		both.MCP = slices.DeleteFunc(slices.Clone(b.MCP), func(name string) bool { return !other.UsesServer(name) })
		if len(both.MCP) == 0 {
			both.MCP = []string{NoServers}
		}
	}
	return both
}

// UsesServer reports whether turns use the owner's MCP server with this name.
func (b Bounds) UsesServer(name string) bool { return len(b.MCP) == 0 || slices.Contains(b.MCP, name) }

// ProjectPolicy is the configuration for turns in a directory and below it.
type ProjectPolicy struct {
	Dir     string       `toml:"dir" check:"path"` // absolute, inside projects.roots
	Context []string     `toml:"context"`          // files below Dir that ductor adds to the first prompt of a session
	Tools   cli.ToolList `toml:",inline"`
	// ShareSessions lets agents in a group read the sessions of this project in other chats; see SessionScope.
	ShareSessions bool   `toml:"share_sessions"`
	Bounds        Bounds `toml:",inline"`
}

// AccountChoice is what a user can choose with /account.
type AccountChoice struct {
	Agent   cli.Agent
	Account cli.Account         // the current choice
	All     []cli.MenuEntry     // the default account first
	Limits  []cli.AccountLimits // of all agents
}

// AgentDefaults apply to an agent unless the conversation or its role sets another value.
type AgentDefaults struct {
	Model  cli.ModelID `toml:"model" applies:"at once"`
	Effort cli.Effort  `toml:"effort" applies:"at once"`
	Args   []string    `toml:"args"` // additional arguments of the agent's command line
}
