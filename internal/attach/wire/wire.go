// Package wire defines the protocol between `ductor attach` and ductor: one JSON value per line in both directions, over
// a Unix socket in ductor's state directory.
//
// The client sends Hello first. ductor answers with Welcome, or with Bye and the end of the connection. The client then
// opens a conversation, receives its Snapshot, and after that every change.
//
// Every change names its object: an entry by its turn, a tool by its turn and id, an approval and a notice by its id, a
// piece of text by its turn and its position. So a client needs no counter to continue after a reconnect, to the same
// process or to the next one. It opens its conversation again, and merges the Snapshot with its own state:
//
//   - The Snapshot lists all open approvals and all waiting and running entries. If the client has another, it is over.
//   - An entry of the Snapshot replaces the client's entry of the same turn, unless the entry is Replayed. The texts and
//     tools of a replayed entry are not complete yet: the client does not change its own until the entry comes again.
//   - Older entries and notices of the client stay.
//
// If a connection ends without a Bye, the client connects again. It repeats each Prompt, Command, Decide and Cancel, with
// the same id, until it gets the Reply. ductor carries out each of them once. The client does not repeat an Abort, which
// could stop a turn that the user started since.
package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"time"
)

// Version is the version of this protocol. ductor refuses a client of another version.
const Version = 1

// Names in the state directory, and limits.
const (
	Socket    = "attach.sock"
	MaxLine   = 8 << 20   // bytes of a line
	MaxPrompt = 256 << 10 // bytes of a prompt
	MaxID     = 64        // characters of an id that the client chooses; letters, digits, - and _
)

// errLong means that a line is longer than MaxLine.
var errLong = errors.New("a line is too long")

// ReadLine reads a line of at most MaxLine bytes.
func ReadLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > MaxLine {
			return nil, errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Request is a line of the client. Exactly one field is set.
type Request struct {
	Hello   *Hello   `json:"hello,omitempty"`
	List    *List    `json:"list,omitempty"`
	Open    *Open    `json:"open,omitempty"`
	Prompt  *Prompt  `json:"prompt,omitempty"`
	Command *Command `json:"command,omitempty"`
	Decide  *Decide  `json:"decide,omitempty"`
	Abort   *Abort   `json:"abort,omitempty"`
	Cancel  *Cancel  `json:"cancel,omitempty"`
}

// ID returns the id that the client chose. It returns "" for a request without a reply.
func (r Request) ID() string {
	switch {
	case r.Prompt != nil:
		return r.Prompt.ID
	case r.Command != nil:
		return r.Command.ID
	case r.Decide != nil:
		return r.Decide.ID
	case r.Abort != nil:
		return r.Abort.ID
	case r.Cancel != nil:
		return r.Cancel.ID
	}
	return ""
}

// Hello is the first line of a client.
type Hello struct {
	Version int    `json:"version"`
	Secret  string `json:"secret"`
}

// List requests Message.Conversations.
type List struct{}

// Open opens a conversation in place of the open one. ductor answers with Message.Snapshot. Messages before the
// Snapshot belong to the previous conversation. If Conversation is empty, it is the private chat of the owner.
type Open struct {
	Conversation string `json:"conversation"` // Conversation.Key
}

// Prompt is a prompt of the owner in the open conversation. It becomes the turn TurnOf(ID). ductor replies once it is
// stored.
type Prompt struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// TurnPrefix begins the ids of turns whose prompts come from terminals.
const TurnPrefix = "attach-"

// TurnOf returns the turn of the prompt with an id.
func TurnOf(id string) string { return TurnPrefix + id }

// Command is a command as users write it in the chat, such as "/model opus". ductor sends a Reply after it has carried
// out the command. The command's output is a separate Notice, which the chat also shows. For "/abort", clients send an
// Abort instead.
type Command struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Decide decides an approval of the open conversation. If someone decided it before, the Reply has an error, and the
// Approval comes with that decision.
type Decide struct {
	ID       string     `json:"id"`
	Approval string     `json:"approval"`
	Choice   Choice     `json:"choice"`            // from Approval.Choices
	Reason   string     `json:"reason,omitempty"`  // of Deny, for the agent
	Answers  [][]string `json:"answers,omitempty"` // of Answer: the chosen labels or own words, for each question
}

// Abort stops the running turn of the open conversation and empties its queue. With a Turn it stops only that turn, if
// it runs.
type Abort struct {
	ID   string `json:"id"`
	Turn string `json:"turn,omitempty"`
}

// Cancel removes a turn from the queue of the open conversation.
type Cancel struct {
	ID   string `json:"id"`
	Turn string `json:"turn"`
}

// Message is a line of ductor. Exactly one field is set.
type Message struct {
	Welcome       *Welcome       `json:"welcome,omitempty"`
	Bye           *Bye           `json:"bye,omitempty"`
	Conversations []Conversation `json:"conversations,omitempty"`
	Activity      *Activity      `json:"activity,omitempty"`
	Snapshot      *Snapshot      `json:"snapshot,omitempty"`
	Reply         *Reply         `json:"reply,omitempty"`
	Entry         *Entry         `json:"entry,omitempty"`
	Text          *Text          `json:"text,omitempty"`
	Thought       *Thought       `json:"thought,omitempty"`
	Tool          *Tool          `json:"tool,omitempty"`
	Change        *Change        `json:"change,omitempty"`
	Plan          *Plan          `json:"plan,omitempty"`
	Status        *Status        `json:"status,omitempty"`
	Approval      *Approval      `json:"approval,omitempty"`
	Notice        *Notice        `json:"notice,omitempty"`
}

// Welcome accepts a client.
type Welcome struct {
	Version int    `json:"version"` // of the protocol
	Ductor  string `json:"ductor"`  // version of ductor
}

// Reason is the reason why ductor ends a connection.
type Reason string

// The reasons.
const (
	ReasonRefused Reason = "refused" // the client may not attach, or sent something that ductor cannot read
	ReasonRemoved Reason = "removed" // the owner may no longer use ductor
)

// Bye is the last line of a connection. The client does not connect again. A connection also ends, without a Bye, if
// ductor stops or if the client does not read.
type Bye struct {
	Reason   Reason `json:"reason"`
	Sentence string `json:"sentence"` // for the user
}

// Reply answers the request with an id.
type Reply struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"` // a sentence for the user; empty if ductor carried it out
}

// Conversation is a conversation that the owner can open.
type Conversation struct {
	Key       string    `json:"key"`             // chat/topic
	Title     string    `json:"title,omitempty"` // the name of the chat, or the title of its session; may be empty
	Used      time.Time `json:"used,omitzero"`
	Running   bool      `json:"running,omitempty"`
	Approvals int       `json:"approvals,omitempty"` // that wait
}

// Activity is a change of the state of a conversation. It comes for every conversation, open or not.
type Activity struct {
	Conversation string `json:"conversation"` // Conversation.Key
	Running      bool   `json:"running,omitempty"`
	Approvals    int    `json:"approvals,omitempty"` // that wait
}

// Snapshot is the state of the conversation that was opened.
type Snapshot struct {
	Conversation string     `json:"conversation"`
	Title        string     `json:"title,omitempty"` // of the session
	Agent        string     `json:"agent"`           // that gets the next prompt
	Model        string     `json:"model,omitempty"`
	Mode         string     `json:"mode,omitempty"` // permission mode
	Dir          string     `json:"dir,omitempty"`
	Entries      []Entry    `json:"entries"` // the last ended ones, then the running one, then the waiting ones
	Approvals    []Approval `json:"approvals"`
	Notices      []Notice   `json:"notices"` // recent ones
}

// State is the state of an entry.
type State string

// The states of an entry.
const (
	StateQueued      State = "queued"
	StateRunning     State = "running"
	StateDone        State = "done"
	StateFailed      State = "failed"
	StateAborted     State = "aborted"
	StateCancelled   State = "cancelled"   // left the queue before it ran
	StateSteered     State = "steered"     // its prompt was added to the running turn
	StateInterrupted State = "interrupted" // ductor died while it ran
)

// Over reports whether an entry can no longer change. Such an entry has its whole answer. The client must ignore text
// that still arrives for it.
func (s State) Over() bool { return s != StateQueued && s != StateRunning }

// Entry is a turn with its prompt and its results until now. ductor sends it when the turn is queued, when it starts,
// when ductor has caught up with it after a restart, and when it ends.
type Entry struct {
	Turn       string    `json:"turn"`
	State      State     `json:"state"`
	Prompt     string    `json:"prompt"`
	Files      []string  `json:"files,omitempty"`    // names of files that came with the prompt
	Terminal   bool      `json:"terminal,omitempty"` // a terminal sent the prompt, otherwise the chat or a job
	Job        string    `json:"job,omitempty"`      // the title of the job
	Ahead      int       `json:"ahead,omitempty"`    // turns before it, while it is queued
	Agent      string    `json:"agent,omitempty"`
	Model      string    `json:"model,omitempty"`
	Replayed   bool      `json:"replayed,omitempty"` // see the package comment
	Answer     string    `json:"answer,omitempty"`   // as Markdown
	Tools      []Tool    `json:"tools,omitempty"`
	Changes    []Change  `json:"changes,omitempty"`
	Plan       []Step    `json:"plan,omitempty"`
	Failure    string    `json:"failure,omitempty"` // a sentence
	Queued     time.Time `json:"queued,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
	DurationMS int64     `json:"duration_ms,omitempty"`
	CostUSD    float64   `json:"cost_usd,omitempty"`
}

// Text continues the answer of a turn: the answer is now its first Offset bytes, and then Text. An Offset below the
// length of the answer removes text that the agent took back.
type Text struct {
	Turn   string `json:"turn"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// Thought is reasoning of the agent. It is no part of the answer, and no Snapshot has it.
type Thought struct {
	Turn string `json:"turn"`
	Text string `json:"text"`
}

// ToolState is the state of a tool.
type ToolState string

// The states of a tool.
const (
	ToolRunning ToolState = "running"
	ToolDone    ToolState = "done"
	ToolFailed  ToolState = "failed"
)

// Tool is a tool call of an agent. It comes when the tool starts and when it ends, each time with all that is known.
type Tool struct {
	Turn       string          `json:"turn"`
	ID         string          `json:"id"`
	Parent     string          `json:"parent,omitempty"` // the tool that started the sub-agent which uses this one
	Name       string          `json:"name"`
	Title      string          `json:"title"`           // the whole command or path
	Input      json.RawMessage `json:"input,omitempty"` // all arguments
	State      ToolState       `json:"state"`
	Output     string          `json:"output,omitempty"`
	Lost       int             `json:"lost,omitempty"` // bytes missing at the beginning of Output
	ExitCode   *int            `json:"exit_code,omitempty"`
	Error      string          `json:"error,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	Offset     int             `json:"offset"` // bytes of the answer that came before it
}

// Change is a change of a file. Turn is empty inside an approval.
type Change struct {
	Turn   string `json:"turn,omitempty"`
	Path   string `json:"path"`
	Kind   string `json:"kind"`             // add, update or delete
	Diff   string `json:"diff,omitempty"`   // unified; empty if the agent gives none
	Offset int    `json:"offset,omitempty"` // bytes of the answer that came before it
}

// Plan is the whole to-do list of the agent.
type Plan struct {
	Turn  string `json:"turn"`
	Steps []Step `json:"steps"`
}

// Step is an entry of a plan.
type Step struct {
	Text  string `json:"text"`
	State string `json:"state"` // open, active or done
}

// Status is an activity of the agent that shows neither text nor tools, such as that it waits for its model. An empty
// Sentence ends the previous one.
type Status struct {
	Turn     string `json:"turn"`
	Sentence string `json:"sentence"`
	Warning  bool   `json:"warning,omitempty"` // a message that stays
}

// Notice is a message of ductor in the chat outside of a turn, such as the answer to a command. It may come again with
// the same id.
type Notice struct {
	ID   string    `json:"id"`
	Text string    `json:"text"` // plain
	At   time.Time `json:"at"`
}
