// Package wire defines the protocol between `ductor attach` (the client) and ductor: one JSON value per line in both
// directions, over a Unix socket in ductor's state directory.
//
// The client first sends Hello. ductor answers with Welcome. If it refuses the client, it answers with Bye and closes
// the connection. The client then opens a conversation, receives its Snapshot, and after that every change.
//
// A turn is one prompt and the agent's work on it; an Entry describes a turn. Every change identifies the object that
// it changes: an entry by its turn, a tool by its turn and id, an approval and a notice by its id, a piece of text by
// its turn and its position. A client can therefore continue after a reconnect, to the same process or to a new one. It
// opens its conversation again, and merges the Snapshot into its own state:
//
//   - The Snapshot lists all open approvals and all waiting and running entries. Any others that the client has are
//     over.
//   - An entry of the Snapshot replaces the client's entry of the same turn, unless the entry is Replayed. A replayed
//     entry is incomplete, so the client does not change its own entry until ductor sends the entry again.
//   - The client's older entries and notices stay.
//
// If a connection ends without a Bye, the client reconnects. It repeats each Prompt, Command, Decide and Cancel, with
// the same id, until it gets the Reply. ductor handles each id once. The client does not repeat an Abort, because a
// repeated Abort could stop a turn that the user started in the meantime.
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
	MaxLine   = 8 << 20   // maximum bytes of a line
	MaxPrompt = 256 << 10 // maximum bytes of a prompt
	MaxID     = 64        // maximum length of an ID; only letters, digits, - and _ are allowed
)

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

// Request is a line from the client. Exactly one field is set.
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

// ID returns the id of the request, or "" for a request without a reply.
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

// List requests the conversations that the owner can open; see Message.Conversations.
type List struct{}

// Open opens a conversation and closes the previous one. If Conversation is empty, Open opens the private chat of the
// owner. ductor answers with Message.Snapshot. Messages before the Snapshot still belong to the previous conversation.
type Open struct {
	Conversation string `json:"conversation"` // the Key of a Conversation
}

// Prompt is a prompt for the open conversation. ductor stores it as a turn with the ID TurnOf(ID), and then replies.
type Prompt struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// TurnPrefix is the prefix of the ids of turns whose prompts come from terminals.
const TurnPrefix = "attach-"

// TurnOf returns the id of the turn for a prompt.
func TurnOf(id string) string { return TurnPrefix + id }

// Command is a text that begins with a slash, as users send it in the chat: for example, "/model opus". ductor runs the
// command, and then replies. The output of the command is a separate Notice, which the chat also shows. Instead of
// "/abort", clients send an Abort.
type Command struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Decide decides an approval of the open conversation. If another decision was faster, the Reply contains an error, and
// ductor sends an Approval with the other decision.
type Decide struct {
	ID       string     `json:"id"`
	Approval string     `json:"approval"`
	Choice   Choice     `json:"choice"`            // one of Approval.Choices
	Reason   string     `json:"reason,omitempty"`  // reason for Deny; the agent reads it
	Answers  [][]string `json:"answers,omitempty"` // for each question: the chosen labels or the user's own words
}

// Abort stops the running turn of the open conversation and empties its queue. If Turn is set, it stops only that
// turn, and only if the turn is running.
type Abort struct {
	ID   string `json:"id"`
	Turn string `json:"turn,omitempty"`
}

// Cancel removes a turn from the queue of the open conversation.
type Cancel struct {
	ID   string `json:"id"`
	Turn string `json:"turn"`
}

// Message is a line from ductor. Exactly one field is set.
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

// Welcome accepts the connection of a client.
type Welcome struct {
	Version int    `json:"version"` // version of the protocol
	Ductor  string `json:"ductor"`  // version of ductor
}

// Reason is the reason why ductor ends a connection.
type Reason string

// Reason values.
const (
	ReasonRefused Reason = "refused" // the client may not attach, or sent an invalid request
	ReasonRemoved Reason = "removed" // the user may not use ductor any more
)

// Bye is the last line of a connection that ductor refuses. The client must not reconnect. ductor sends no Bye when it
// stops, or when it disconnects a client that does not read.
type Bye struct {
	Reason   Reason `json:"reason"`
	Sentence string `json:"sentence"` // sentence for the user
}

// Reply answers the request with the same id.
type Reply struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"` // a sentence for the user; empty on success
}

// Conversation is a conversation that the owner can open.
type Conversation struct {
	Key       string    `json:"key"`             // chat/topic
	Title     string    `json:"title,omitempty"` // title of the session, or name of the chat; may be empty
	Used      time.Time `json:"used,omitzero"`
	Running   bool      `json:"running,omitempty"`
	Approvals int       `json:"approvals,omitempty"` // number of open approvals
}

// Activity reports that a conversation has started or stopped working, or that its approvals changed. ductor sends it
// for all conversations, not only for the open one.
type Activity struct {
	Conversation string `json:"conversation"` // Conversation.Key
	Running      bool   `json:"running,omitempty"`
	Approvals    int    `json:"approvals,omitempty"` // number of open approvals
}

// Snapshot is the state of the opened conversation.
type Snapshot struct {
	Conversation string     `json:"conversation"`
	Title        string     `json:"title,omitempty"` // title of the session
	Agent        string     `json:"agent"`           // agent for the next prompt
	Model        string     `json:"model,omitempty"`
	Mode         string     `json:"mode,omitempty"` // permission mode
	Dir          string     `json:"dir,omitempty"`
	Entries      []Entry    `json:"entries"` // recent ended turns, then running turns, then waiting turns
	Approvals    []Approval `json:"approvals"`
	Notices      []Notice   `json:"notices"` // recent notices
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
	StateCancelled   State = "cancelled"   // the turn left the queue before it ran
	StateSteered     State = "steered"     // the prompt was added to the running turn
	StateInterrupted State = "interrupted" // ductor died while the turn ran
)

// Over reports whether an entry is final. A final entry contains the whole answer, and the client must ignore later
// text for it.
func (s State) Over() bool { return s != StateQueued && s != StateRunning }

// Entry is a turn with its prompt and its results so far. ductor sends it when the turn is queued, when it starts,
// when a replay after a restart is complete, and when it ends.
type Entry struct {
	Turn       string    `json:"turn"`
	State      State     `json:"state"`
	Prompt     string    `json:"prompt"`
	Files      []string  `json:"files,omitempty"`    // names of the prompt's files
	Terminal   bool      `json:"terminal,omitempty"` // the prompt came from a terminal, not from the chat or a job
	Job        string    `json:"job,omitempty"`      // title of the job that started the turn; empty if no job did
	Ahead      int       `json:"ahead,omitempty"`    // for a waiting turn: number of turns that run before this one
	Agent      string    `json:"agent,omitempty"`
	Model      string    `json:"model,omitempty"`
	Replayed   bool      `json:"replayed,omitempty"` // the entry is incomplete; see the package comment
	Answer     string    `json:"answer,omitempty"`   // answer in Markdown
	Tools      []Tool    `json:"tools,omitempty"`
	Changes    []Change  `json:"changes,omitempty"`
	Plan       []Step    `json:"plan,omitempty"`
	Failure    string    `json:"failure,omitempty"` // sentence about the failure
	Queued     time.Time `json:"queued,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
	DurationMS int64     `json:"duration_ms,omitempty"`
	CostUSD    float64   `json:"cost_usd,omitempty"`
}

// Text appends to the answer of a turn, or changes the end of the answer. The new answer consists of the first Offset
// bytes of the previous answer, followed by Text. If Offset is less than the length of the previous answer, the agent
// has retracted text.
type Text struct {
	Turn   string `json:"turn"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// Thought is reasoning of the agent. It is not part of the answer, and a Snapshot does not contain it.
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

// Tool is a tool call of an agent. ductor sends it when the tool starts and when the tool ends, each time with
// everything that is known about the call.
type Tool struct {
	Turn       string          `json:"turn"`
	ID         string          `json:"id"`
	Parent     string          `json:"parent,omitempty"` // call that started the sub-agent; empty for other calls
	Name       string          `json:"name"`
	Title      string          `json:"title"`           // the complete command or path
	Input      json.RawMessage `json:"input,omitempty"` // all arguments
	State      ToolState       `json:"state"`
	Output     string          `json:"output,omitempty"`
	Lost       int             `json:"lost,omitempty"` // number of bytes that are missing at the beginning of Output
	ExitCode   *int            `json:"exit_code,omitempty"`
	Error      string          `json:"error,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	Offset     int             `json:"offset"` // number of bytes of the answer before this tool call
}

// Change describes how an agent changed a file. Turn is empty if the Change belongs to an Approval.
type Change struct {
	Turn   string `json:"turn,omitempty"`
	Path   string `json:"path"`
	Kind   string `json:"kind"`             // add, update or delete
	Diff   string `json:"diff,omitempty"`   // unified diff; empty if the agent reports none
	Offset int    `json:"offset,omitempty"` // number of bytes of the answer before this change
}

// Plan is the complete to-do list of the agent.
type Plan struct {
	Turn  string `json:"turn"`
	Steps []Step `json:"steps"`
}

// Step is an entry of a plan.
type Step struct {
	Text  string `json:"text"`
	State string `json:"state"` // open, active or done
}

// Status is an activity of the agent other than text and tools, such as waiting for its model. A Status with an empty
// Sentence ends the previous Status.
type Status struct {
	Turn     string `json:"turn"`
	Sentence string `json:"sentence"`
	Warning  bool   `json:"warning,omitempty"` // the sentence stays visible after the next Status
}

// Notice is a message that ductor wrote to the chat outside of a turn, such as the answer to a command. ductor may send
// a Notice again with the same id.
type Notice struct {
	ID   string    `json:"id"`
	Text string    `json:"text"` // plain text
	At   time.Time `json:"at"`
}
