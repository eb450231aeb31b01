package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ductor/cli"
)

// TurnState is the state of a turn. A turn only moves down this list.
type TurnState string

// The states of a turn.
const (
	TurnQueued      TurnState = "queued"
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"        // has a Result without an error
	TurnFailed      TurnState = "failed"      // has a Result with an error
	TurnAborted     TurnState = "aborted"     // a user aborted it
	TurnCancelled   TurnState = "cancelled"   // removed from the queue before it ran
	TurnSteered     TurnState = "steered"     // merged into the turn Into
	TurnInterrupted TurnState = "interrupted" // ductor died while it ran; it never runs again unless a user asks
)

// Attachment is a file that came with a message and is stored on this machine.
type Attachment struct {
	Path  string `json:"path"` // absolute, inside the uploads directory
	Name  string `json:"name"` // as the sender called it, cleaned
	MIME  string `json:"mime"`
	Image bool   `json:"image,omitempty"` // can be shown to the model as a picture
}

// String returns the reference to the file in a prompt.
func (a Attachment) String() string {
	return fmt.Sprintf("[Attached file %q (%s): %s]", a.Name, a.MIME, a.Path)
}

// Paths returns the paths of files that came with messages.
func Paths(files []Attachment) []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// Prompt is a user's complete request. Albums and split messages are already merged.
type Prompt struct {
	Conversation ConversationID
	Person       PersonID
	Text         string
	Attachments  []Attachment
	Message      int // the user's message in the chat, to reply to
	// PartOf is the message to whose prompt this one belongs: a forwarded message belongs to the comment before it. It
	// is 0 for none, and is not stored.
	PartOf  int
	Updates []int64 // the updates that it was built from
	Rights  Rights  // the rights of its agent
	// Quotes is the entry of the session that Text contains. It is not told to the agent again. It may be empty.
	Quotes cli.TurnID
	// Arrived is the time at which the first message of the prompt arrived. Zero means the time of submission. It is
	// stored as Turn.Queued.
	Arrived time.Time
}

// Entry describes an entry of a session: its kind, and its position in the session.
type Entry struct {
	Kind    EntryKind
	Role    string      // the configured role that its agent played; empty for none
	Account cli.Account // the log-in that its agent used
	Asks    cli.TurnID  // the turn whose agent asked for it; empty if a user did
	Into    cli.TurnID  // the running turn that this one was merged into; empty if it runs on its own
	// Number orders the entries of a session by the time of their ends. It is 0 before the end.
	Number int64
	UpTo   int64 // the last entry that its prompt told its agent of, by its number
	// Seen is used in a hand-off: it is set if the agent may already have seen the entry. It is not stored.
	Seen bool
}

// EntryKind is the kind of an entry.
type EntryKind string

// The kinds of entries.
const (
	TurnEntry         EntryKind = "" // of the conversation, or of a job
	ConsultationEntry EntryKind = "consultation"
	WorkEntry         EntryKind = "work"
)

// Turn is an entry of a session: one prompt and its outcome.
type Turn struct {
	ID      cli.TurnID
	Entry   Entry
	Session SessionID  // empty until it runs, if the conversation had no session when it was queued
	Again   cli.TurnID // the turn that this one repeats; empty for a new prompt
	Prompt  Prompt
	Wants   Wants // of an order
	State   TurnState
	Agent   cli.Agent
	Model   cli.ModelID
	Sandbox cli.Sandbox // the environment it runs in, set at its start
	Queued  time.Time   // when its prompt came
	Started time.Time   // zero until it ran
	Ended   time.Time   // zero until it ended
	Outcome Outcome     // valid once ended
	// Aborting is set if a user aborted the turn while it was running or about to run.
	Aborting bool
	// Delivered is set if the chat shows the outcome, or a notice that it may be missing.
	Delivered bool
	// Bypass is the time at which the turn's bypass ends. It is set when the turn starts, and zero if the turn has no
	// bypass.
	Bypass time.Time
	// Crashes is how often ductor crashed while the turn ran, or before the chat showed its outcome.
	Crashes int
}

// Outcome is the end of a turn, as the chat shows it.
type Outcome struct {
	State   TurnState   `json:"-"`
	Text    string      `json:"-"` // the whole answer
	Agent   cli.Agent   `json:"agent,omitempty"`
	Model   cli.ModelID `json:"model,omitempty"`
	Usage   cli.Usage   `json:"-"`
	CostUSD float64     `json:"cost_usd,omitempty"`
	// Duration is the time that the user waited. It starts when the prompt arrives.
	Duration time.Duration `json:"duration_ns,omitempty"`
	Denials  []cli.Denial  `json:"denials,omitempty"`
	Fallback bool          `json:"fallback,omitempty"`
	Failure  string        `json:"failure,omitempty"` // the failure as a sentence for the chat; empty on success
	Recovery Recovery      `json:"-"`
	Ending
}

// Shown returns the part of the answer that the chat shows.
func (o Outcome) Shown() string { return cmp.Or(o.Short, o.Text) }

// ActiveTurn is a running turn, seen by the tools of ductor that its agent calls.
type ActiveTurn struct {
	Turn    Turn
	Request cli.Request
	// Life is cancelled when the turn has to end.
	Life context.Context
	// Hide removes secrets from a text.
	Hide func(text string) string
	// Help registers another agent that works for the turn. The turn waits until the other agent calls leave. The
	// returned context ends together with the turn's own agent. If that agent has already ended, Help returns
	// ErrNoTurn.
	Help func(ctx context.Context) (_ context.Context, leave func(), err error)
}

// ActiveTurns gives ductor's tools access to running turns. *conversation.Engine implements it.
type ActiveTurns interface {
	// ActiveTurn returns the turn that an agent runs in a conversation, or ErrNoTurn.
	ActiveTurn(in ConversationID, agent cli.Agent) (ActiveTurn, error)
	// AskUser asks a user to decide a request or answer a question for a running turn, and waits for the decision.
	// asked is a cli.ApprovalAsked or a cli.QuestionAsked without an ID. If ctx ends, AskUser withdraws the request. It
	// returns ErrNoTurn if the turn is not running.
	AskUser(ctx context.Context, turn cli.TurnID, asked cli.Event) (cli.Decision, error)
	// AskFor is AskUser for a request of another agent that works for the turn. The rules of the conversation for that
	// agent apply. AskFor denies tools that the lists of h exclude.
	AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error)
}

// Helper is another agent that works for a running turn.
type Helper struct {
	Agent     cli.Agent
	ToolLists []cli.ToolList // limit its tools together
}

// Ending is shown below the answer of an ended turn.
type Ending struct {
	Announce Announcement `json:"announce,omitempty"`
	Short    string       `json:"short,omitempty"` // the part of a long answer that the chat shows; empty: all of it
	Steps    int          `json:"steps,omitempty"` // number of stored steps
	cli.Standing
	Changed `json:"changed,omitzero"`
}

// Announcement selects the message at the end of a turn, which is sent in addition to the card.
type Announcement string

// The announcements.
const (
	NotAnnounced Announcement = ""
	Announced    Announcement = "sound"
	Muted        Announcement = "silent" // in quiet hours
	Unwanted     Announcement = "none"   // a user does not want to see the outcome: its card only loses its buttons
)

// Step is one action of an agent in a turn: a tool call or a file change.
type Step struct {
	Number   int    // within its turn, from 1
	Tool     string // the agent's own name for it; empty for a file change
	Title    string // the whole command or path
	Input    string // the tool's arguments as JSON, with long texts cut; empty if the agent does not send them
	Duration time.Duration
	ExitCode *int   // nil if the tool has none
	Err      string // empty on success
	Change   cli.ChangeKind
	Output   string // of a tool, or the diff of a file in unified form; empty in a list
	Size     int    // bytes of Output
	Lost     int    // bytes dropped from the beginning
	Offset   int    // bytes of the answer that came before it
}

// StepStore stores the steps of turns. internal/store implements it.
type StepStore interface {
	// SaveSteps stores the steps of a turn and replaces previous ones. It may share a transaction with other writes.
	SaveSteps(ctx context.Context, turn cli.TurnID, at time.Time, steps []Step) error
	// StepsOf lists the steps of a turn. They include the arguments of tools, but not their outputs.
	StepsOf(ctx context.Context, turn cli.TurnID) ([]Step, error)
	// Step returns a step with its output, or ErrNoStep.
	Step(ctx context.Context, turn cli.TurnID, number int) (Step, error)
}

// Steps returns the actions of an agent. Its methods return ErrElsewhere for a turn of another conversation, ErrNoTurn
// and ErrNoStep.
type Steps interface {
	StepsOf(ctx context.Context, in ConversationID, turn cli.TurnID) ([]Step, error)
	Step(ctx context.Context, in ConversationID, turn cli.TurnID, number int) (Step, error)
	// AnswerOf returns the agent's answer.
	AnswerOf(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
}
