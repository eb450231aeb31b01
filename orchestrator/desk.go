package orchestrator

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// Press describes a user action: a button that the user pressed, or a message that does the same as a button, such as
// /abort. Updates contains the IDs of the action's Telegram updates. The transaction that stores the effect of the
// action also marks these updates as handled. So an update that arrives twice has only one effect.
type Press struct {
	Conversation ConversationID
	Person       PersonID
	Role         UserRole
	Updates      []int64
	Arrived      time.Time // when the message or press arrived; zero for a press in a terminal
}

// May reports whether the user's role includes a right.
func (p Press) May(do Right) bool { return p.Role.May(do) }

// MayEnd reports whether the user who pressed the button may abort a turn or remove it from the queue.
func (p Press) MayEnd(t Turn) bool {
	own := t.Prompt.Person == p.Person && t.Prompt.Rights.Of == p.Role.OfTurns()
	return p.May(EndAny) || own && p.May(EndOwn)
}

// Precedes reports whether the user pressed before the prompt of the turn was sent. It compares update IDs, which
// usually ascend. It also compares arrival times, because Telegram may continue with a random ID after a week without
// updates.
func (p Press) Precedes(t Turn) bool {
	of := t.Prompt.Updates
	return len(p.Updates) > 0 && len(of) > 0 && of[0] > p.Updates[0] && !t.Queued.Before(p.Arrived)
}

// PendingAborts are the aborts of a conversation that ductor has received, but not handled yet. Until package bot has
// handled them, no queued turn of the conversation starts. A turn that was already running before a restart continues
// during this time, so that the aborts can stop it.
type PendingAborts struct {
	Conversation ConversationID
	Handled      chan struct{} // package bot closes it when it has handled the aborts
}

// Receipt reports how ductor handled a new prompt.
type Receipt struct {
	Turn  cli.TurnID // the new turn; for ActionDrop, the old turn, whose card loses its buttons
	Ahead int        // number of turns before the new one, including the running turn; 0 means that it runs now
	// Did is what ductor did with the prompt because another turn was running. It is empty if none was running.
	Did  BusyMode
	Full bool      // the queue was full: nothing was stored, and Turn is empty
	At   time.Time // when the prompt will run, if a job runs it later; otherwise zero
}

// AbortReport describes the effects of an abort.
type AbortReport struct {
	Running bool // a turn was running, and ductor aborts it
	Dropped int  // number of turns removed from the queue
	// Questions is the number of cancelled questions to models outside of turns.
	Questions int
	// Unshown is an ended turn whose answer the chat did not show completely before the abort. ductor does not show the
	// rest of that answer. Unshown is empty if there is no such turn.
	Unshown cli.TurnID
	// Stopping is the turn that ductor aborts, or nil if no turn was running.
	Stopping *Stopping
}

// Stopping is a turn that is being aborted.
type Stopping struct {
	// Over is closed when two things are true: the chat shows that the turn has ended, and the turn's processes are
	// dead or ductor has failed to kill them.
	Over <-chan struct{}
	// Alive lists the processes of the turn that are still running.
	Alive func(ctx context.Context) []cli.ProcessName
}

// With returns a Stopping that waits for the turns of both s and other. other may be nil.
func (s *Stopping) With(other *Stopping) *Stopping {
	if other == nil {
		return s
	}
	over := make(chan struct{})
	go func() {
		<-s.Over
		<-other.Over
		close(over)
	}()
	return &Stopping{Over: over, Alive: func(ctx context.Context) []cli.ProcessName {
		return slices.Concat(s.Alive(ctx), other.Alive(ctx))
	}}
}

// RunningTurn describes the running turn of a conversation.
type RunningTurn struct {
	Turn      cli.TurnID
	Title     string // first words of the prompt
	Prompt    string
	Message   int // number of the chat message that contains the prompt
	Started   time.Time
	Approvals int // number of open approvals
	Rights    Rights
	Wants     Wants
}

// Subject describes the bot's message to which a user replies. The zero value means that this message does not belong
// to a turn.
type Subject struct {
	Said   bool   // the message is part of a turn's answer
	Here   bool   // the message belongs to the current session, in which the reply would run
	Newest bool   // the message is the newest answer of the current session
	Job    JobID  // the job whose result the message shows; empty for none
	Title  string // title of the job
	Text   string // the whole answer
}

// Status describes a conversation for /status: the choices of its users, and its running and waiting turns.
type Status struct {
	Conversation ConversationID
	Agent        cli.Agent
	Model        cli.ModelID
	Effort       cli.Effort
	Permission   cli.PermissionMode
	BypassUntil  time.Time // end of a bypass that a user started in this conversation; zero for none
	Dir          string
	Sandbox      cli.Sandbox // the sandbox of the next turn; empty means this host
	Role         string
	Settings     Settings
	Session      Session // the current session; zero before the first turn
	Running      *RunningTurn
	Queue        []Wants    // the settings of the waiting turns, in the order of the queue
	Live         cli.Living // running agents of all conversations
}

// Load counts running and waiting work in all conversations.
type Load struct {
	Queued, Running  int // number of turns
	Approvals        int // open approvals and questions to users
	Jobs, JobsPaused int // number of jobs, including those of webhooks
	JobRuns          int // runs of jobs that have not ended
}

// Alert describes a lasting problem of the machine.
type Alert struct {
	Kind, Key string
	Since     time.Time
	Over      string // text of the message that the owner gets when the problem ends
}

// Role is a named system prompt. It may also set an agent and a model for conversations that have not chosen any.
type Role struct {
	Prompt string       `toml:"prompt"`
	Append bool         `toml:"append" yaml:"append" default:"true"` // false replaces the agent's own system prompt
	Agent  cli.Agent    `toml:"agent" yaml:"agent"`                  // empty means the default agent
	Model  cli.ModelID  `toml:"model" yaml:"model"`                  // empty means the agent's default model
	Tools  cli.ToolList `toml:",inline" yaml:",inline"`
	Bounds Bounds       `toml:",inline" yaml:",inline"`
}

// Bounds are the owner's settings for turns with a role, or for turns in a project.
type Bounds struct {
	AllowedTools []string `toml:"allowed_tools" yaml:"allowed_tools"` // tools that agents may use without asking
	// MaxTurns limits how often the model answers in one turn. 0 means no limit.
	MaxTurns int `toml:"max_turns" yaml:"max_turns" check:"0..1000"`
	// AddDirs are absolute paths of more directories that agents may use.
	AddDirs []string `toml:"add_dirs" yaml:"add_dirs" check:"path"`
	MCP     []string `toml:"mcp" yaml:"mcp"` // names of the owner's MCP servers that turns use; empty means all
}

// NoServers as the value of Bounds.MCP means that turns use none of the owner's MCP servers.
const NoServers = "none"

// With returns the Bounds for a turn to which both Bounds apply.
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

// ProjectPolicy is the configuration of a project. It applies to turns in Dir and below.
type ProjectPolicy struct {
	Dir string `toml:"dir" check:"path"` // absolute, inside projects.roots
	// Context lists files below Dir. ductor adds their contents to the first prompt of a session.
	Context []string     `toml:"context"`
	Tools   cli.ToolList `toml:",inline"`
	// ShareSessions lets agents in a group read sessions of this project that belong to other chats.
	ShareSessions bool   `toml:"share_sessions"`
	Bounds        Bounds `toml:",inline"`
}

// AccountChoice contains the accounts from which users choose with /account.
type AccountChoice struct {
	Agent   cli.Agent
	Account cli.Account         // the current choice
	All     []cli.MenuEntry     // all accounts, the default one first
	Limits  []cli.AccountLimits // limits of all agents
}

// AgentDefaults are settings of an agent. The choices of a conversation or of its role take precedence.
type AgentDefaults struct {
	Model  cli.ModelID `toml:"model" applies:"at once"`
	Effort cli.Effort  `toml:"effort" applies:"at once"`
	Args   []string    `toml:"args"` // additional arguments of the agent's command line
}
