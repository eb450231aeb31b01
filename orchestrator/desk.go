package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// Press is who pressed a button where, and the update it came in, so that what it starts is started once.
type Press struct {
	Conversation ConversationID
	Person       PersonID
	Role         UserRole
	Updates      []int64
}

// May says whether who pressed has a right.
func (p Press) May(do Right) bool { return p.Role.May(do) }

// MayEnd says whether who pressed may take a turn out of the queue, or end it.
func (p Press) MayEnd(t Turn) bool {
	own := t.Prompt.Person == p.Person && t.Prompt.Rights.Of == p.Role.OfTurns()
	return p.May(EndAny) || own && p.May(EndOwn)
}

// Receipt says what became of a prompt.
type Receipt struct {
	Turn  cli.TurnID // the new one; of ActionDrop the turn itself, where its card takes the pressed button away
	Ahead int        // turns before it, the running one included; 0 means it runs now
	Did   BusyMode   // what became of a prompt that found a turn running: it waits, is a part of it, or ended it
	Full  bool       // the queue had no room: nothing was stored, Turn is empty
	At    time.Time  // when a job runs it; zero for a turn
}

// AbortReport says what an abort ended.
type AbortReport struct {
	Running bool // a turn was running
	Dropped int  // queued turns that will not run
	// Questions is how many questions to models ended that were asked beside turns.
	Questions int
	// Unshown is a turn that had ended and whose answer the chat does not show whole now; empty if there was none.
	Unshown cli.TurnID
	// Stopping is the turn that was running; nil if there was none.
	Stopping *Stopping
}

// Stopping is a turn that was told to end.
type Stopping struct {
	// Over is closed once all that the turn started is dead, or would not end, and the chat shows how the turn ended.
	Over <-chan struct{}
	// Alive names what still runs of the turn.
	Alive func(ctx context.Context) []cli.ProcessName
}

// RunningTurn is the turn a conversation is busy with.
type RunningTurn struct {
	Turn      cli.TurnID
	Title     string // first words of its prompt
	Prompt    string
	Message   int // the person's message it was made of
	Started   time.Time
	Approvals int // what its agent waits for people with
	Rights    Rights
}

// Subject is what a message of ours shows that a user replies to. The zero value is a message of no turn.
type Subject struct {
	Said   bool   // an agent said it in a turn
	Here   bool   // in the session that gets the next prompt
	Newest bool   // as the newest answer there
	Job    JobID  // that it is the report of; empty for none
	Title  string // of the job
	Text   string // the whole answer
}

// Status is what a conversation is set to and busy with.
type Status struct {
	Conversation ConversationID
	Agent        cli.Agent
	Model        cli.ModelID
	Effort       cli.Effort
	Permission   cli.PermissionMode
	BypassUntil  time.Time // when a bypass ends that was chosen here; zero for none
	Dir          string
	Sandbox      cli.Sandbox // where the next turn runs; empty for this host
	Role         string
	Settings
	Session Session // zero when none was begun
	Running *RunningTurn
	Queue   int        // turns waiting
	Live    cli.Living // which agents run, in all conversations
}

// Load is how much waits, in all conversations.
type Load struct {
	Queued, Running  int // turns
	Approvals        int // and questions, that wait for a user
	Jobs, JobsPaused int // webhooks included
	JobRuns          int // that have not ended
}

// Alert is a trouble of the machine that lasts.
type Alert struct {
	Kind, Key string
	Since     time.Time
	Over      string // what the owner is told when it is over
}

// Role is a system prompt with a name, and who is to play it unless the conversation chose somebody.
type Role struct {
	Prompt  string
	Replace bool        // instead of the agent's own system prompt, not after it
	Agent   cli.Agent   // empty: whoever is the default
	Model   cli.ModelID // empty: that agent's default
	Tools   cli.ToolList
}

// ProjectPolicy is what counts for the turns in a directory and all below it.
type ProjectPolicy struct {
	Dir     string   // absolute
	Context []string // files below Dir that every session begins with
	Tools   cli.ToolList
}

// AgentDefaults are what an agent is given when neither the conversation nor its role says otherwise.
type AgentDefaults struct {
	Model  cli.ModelID
	Effort cli.Effort
	Args   []string // added to its command line
}
