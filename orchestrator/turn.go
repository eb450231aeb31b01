package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ductor/cli"
)

// TurnState is the state of a turn. A turn changes its state only to a later one in the list below.
type TurnState string

// TurnState values.
const (
	TurnQueued      TurnState = "queued"
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"        // the agent's Result has no error
	TurnFailed      TurnState = "failed"      // the agent's Result has an error
	TurnAborted     TurnState = "aborted"     // a user aborted it
	TurnCancelled   TurnState = "cancelled"   // a user removed the turn from the queue
	TurnSteered     TurnState = "steered"     // ductor added the prompt to the running turn Entry.Into
	TurnInterrupted TurnState = "interrupted" // ductor died while the turn ran; only a user can run the prompt again
)

// Attachment is a file that a user sent and ductor stored on this machine.
type Attachment struct {
	Path  string `json:"path"` // absolute, inside the uploads directory
	Name  string `json:"name"` // file name from the sender, without unsafe characters
	MIME  string `json:"mime"`
	Image bool   `json:"image,omitempty"` // agents can show the file to the model as a picture
}

// String returns the reference to the file in a prompt.
func (a Attachment) String() string {
	return fmt.Sprintf("[Attached file %q (%s): %s]", a.Name, a.MIME, a.Path)
}

// Paths returns the paths of attachments.
func Paths(files []Attachment) []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// Prompt is a user's complete request. It merges the messages of an album or of a split text.
type Prompt struct {
	Conversation ConversationID
	Person       PersonID
	Text         string
	Attachments  []Attachment
	Message      int // the user's message in the chat, to which ductor replies
	// PartOf is the message of the prompt to which this prompt belongs. Forwarded messages belong to the comment before
	// them. It is 0 for none. The store does not keep it.
	PartOf  int
	Updates []int64 // the Telegram updates that contain the prompt
	Rights  Rights  // the rights of the prompt's agent
	// Quotes is the entry of the session that Text already contains. The agent does not get this entry again. It may be
	// empty.
	Quotes cli.TurnID
	// Arrived is the time at which the first message of the prompt arrived. Zero means the time of submission. The
	// store keeps it as Turn.Queued.
	Arrived time.Time
}

// Entry describes an entry of a session: its kind, and its position in the session.
type Entry struct {
	Kind    EntryKind
	Role    string      // the configured role of the agent; empty for none
	Account cli.Account // the log-in of the agent
	Asks    cli.TurnID  // the turn whose agent asked for the entry; empty if a user did
	Into    cli.TurnID  // the running turn to which the prompt was added; empty if the prompt has a turn of its own
	// Number is the position of the entry in its session, in the order in which entries end. It is 0 before the end.
	Number int64
	UpTo   int64 // Number of the last entry that the prompt contained for its agent
	// Seen means that the agent may have read this entry before it gets the entry as history. The store does not keep
	// it.
	Seen bool
}

// EntryKind is the kind of an entry.
type EntryKind string

// EntryKind values.
const (
	TurnEntry         EntryKind = "" // a turn of the conversation or of a job
	ConsultationEntry EntryKind = "consultation"
	WorkEntry         EntryKind = "work"
)

// Turn is an entry of a session: one prompt and its outcome.
type Turn struct {
	ID      cli.TurnID
	Entry   Entry
	Session SessionID  // empty until the turn runs, if the conversation had no session when it was queued
	Again   cli.TurnID // the turn whose prompt this turn repeats; empty for a new prompt
	Prompt  Prompt
	Wants   Wants // overrides of an Order
	State   TurnState
	Agent   cli.Agent
	Model   cli.ModelID
	Sandbox cli.Sandbox // environment of the turn, set at its start
	Queued  time.Time   // when the prompt arrived
	Started time.Time   // zero before the start
	Ended   time.Time   // zero before the end
	Outcome Outcome     // valid after the end
	// Aborting means that a user aborted the turn while it was running or about to run.
	Aborting bool
	// Delivered means that the chat shows the outcome, or a notice that the outcome may be missing.
	Delivered bool
	// Bypass is the end of the turn's bypass. It is set when the turn starts, and is zero if the turn has no bypass.
	Bypass time.Time
	// Crashes is the number of crashes of ductor while the turn ran, or before the chat showed its outcome.
	Crashes int
}

// Outcome is the result of a turn as the chat shows it.
type Outcome struct {
	State   TurnState   `json:"-"`
	Text    string      `json:"-"` // the whole answer
	Agent   cli.Agent   `json:"agent,omitempty"`
	Model   cli.ModelID `json:"model,omitempty"`
	Usage   cli.Usage   `json:"-"`
	CostUSD float64     `json:"cost_usd,omitempty"`
	// Duration is how long the user waited after the prompt arrived.
	Duration time.Duration `json:"duration_ns,omitempty"`
	Denials  []cli.Denial  `json:"denials,omitempty"`
	Fallback bool          `json:"fallback,omitempty"`
	Failure  string        `json:"failure,omitempty"` // the failure as a sentence for the chat; empty on success
	Recovery Recovery      `json:"-"`
	Ending
}

// Shown returns the part of the answer that the chat shows.
func (o Outcome) Shown() string { return cmp.Or(o.Short, o.Text) }

// ActiveTurn describes a running turn to the tools of ductor that its agent calls.
type ActiveTurn struct {
	Turn    Turn
	Request cli.Request
	// Life is cancelled when the turn must end.
	Life context.Context
	// Hide removes secrets from a text.
	Hide func(text string) string
	// Help registers another agent that works for the turn. The turn waits until the caller calls leave. The returned
	// context ends together with the turn's own agent. Help returns ErrNoTurn if that agent has already ended.
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
	// agent apply. AskFor denies tools that h.ToolLists exclude.
	AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error)
}

// Helper is another agent that works for a running turn.
type Helper struct {
	Agent     cli.Agent
	ToolLists []cli.ToolList // all of these lists limit the agent's tools
}

// Ending is the part of an Outcome that the chat shows below the answer.
type Ending struct {
	Announce Announcement `json:"announce,omitempty"`
	Short    string       `json:"short,omitempty"` // the part of a long answer that the chat shows; empty: all of it
	Steps    int          `json:"steps,omitempty"` // number of stored steps
	cli.Standing
	Changed `json:"changed,omitzero"`
}

// Announcement selects the separate message that ductor sends at the end of a turn.
type Announcement string

// Announcement values.
const (
	NotAnnounced Announcement = ""
	Announced    Announcement = "sound"
	Muted        Announcement = "silent" // in quiet hours
	Unwanted     Announcement = "none"   // a user does not want to see the outcome; the card only loses its buttons
)

// Step is one action of an agent in a turn: a tool call or a file change.
type Step struct {
	Number   int    // number within the turn, from 1
	Tool     string // the agent's name of the tool; empty for a file change
	Title    string // the whole command or path
	Input    string // arguments of the tool as JSON, with long texts cut; empty if the agent does not send them
	Duration time.Duration
	ExitCode *int   // nil if the tool has no exit code
	Err      string // empty on success
	Change   cli.ChangeKind
	Output   string // output of a tool, or unified diff of a file; empty in a list
	Size     int    // bytes of Output
	Lost     int    // bytes removed from the beginning of Output
	Offset   int    // bytes of the answer before the step
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
// for an unknown turn and ErrNoStep for an unknown step.
type Steps interface {
	StepsOf(ctx context.Context, in ConversationID, turn cli.TurnID) ([]Step, error)
	Step(ctx context.Context, in ConversationID, turn cli.TurnID, number int) (Step, error)
	// AnswerOf returns the agent's answer.
	AnswerOf(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
}
