package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ductor/cli"
)

// TurnState is where a turn stands. A turn moves down this list and never up.
type TurnState string

// The states of a turn.
const (
	TurnQueued      TurnState = "queued"
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"        // has a Result without an error
	TurnFailed      TurnState = "failed"      // has a Result with an error
	TurnAborted     TurnState = "aborted"     // a person ended it
	TurnCancelled   TurnState = "cancelled"   // left the queue without having run
	TurnSteered     TurnState = "steered"     // became a part of the turn Into
	TurnInterrupted TurnState = "interrupted" // ductor died while it ran; never runs again without a request
)

// Attachment is a file that came with a message and lies on our disk.
type Attachment struct {
	Path  string `json:"path"` // absolute, inside the uploads directory
	Name  string `json:"name"` // as the sender called it, cleaned
	MIME  string `json:"mime"`
	Image bool   `json:"image,omitempty"` // can be shown to the model as a picture
}

// String names the file as agents read it.
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

// Prompt is what a person asked, complete: albums and split pastes are merged before it is made.
type Prompt struct {
	Conversation ConversationID
	Person       PersonID
	Text         string
	Attachments  []Attachment
	Message      int     // the person's message in the chat, to answer to
	PartOf       int     // the message whose prompt this one belongs to, as a forward does to its comment; 0 for none; it is not stored
	Updates      []int64 // the inbox entries it was made of
	Rights       Rights  // what its agent may do without asking
	// Arrived is when the first of its messages came; zero for when it was submitted. It is kept as Turn.Queued.
	Arrived time.Time
}

// Turn is one prompt and what became of it.
type Turn struct {
	ID      cli.TurnID
	Session SessionID  // empty until it runs, when none was current as it was queued
	Again   cli.TurnID // the turn this one repeats; empty for a new prompt
	Into    cli.TurnID // the running turn that this one was handed to; empty for one with a run of its own
	Prompt  Prompt
	Wants   Wants // of an order
	State   TurnState
	Agent   cli.Agent
	Model   cli.ModelID
	Sandbox cli.Sandbox // where it runs, from its start on
	Queued  time.Time   // when its prompt came
	Started time.Time   // zero until it ran
	Ended   time.Time   // zero until it ended
	Outcome Outcome     // valid once ended
	// Aborting is set when a person wanted a running turn to end, or one that was about to run.
	Aborting bool
	// Delivered is set when the chat shows the outcome, or when it was told that it may not.
	Delivered bool
	// Bypass is when the bypass ends that it runs in, from its start on; zero for none.
	Bypass time.Time
	// Crashes is how often ductor crashed while it ran, or while the outcome was to be shown.
	Crashes int
}

// Outcome is how a turn ended, as the chat is to show it.
type Outcome struct {
	State    TurnState     `json:"-"`
	Text     string        `json:"-"` // the whole answer
	Agent    cli.Agent     `json:"agent,omitempty"`
	Model    cli.ModelID   `json:"model,omitempty"`
	Usage    cli.Usage     `json:"-"`
	CostUSD  float64       `json:"cost_usd,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"` // from when the prompt came: the time that the user waited
	Denials  []cli.Denial  `json:"denials,omitempty"`
	Fallback bool          `json:"fallback,omitempty"`
	Failure  string        `json:"failure,omitempty"` // what went wrong, for the chat; empty when it went well
	Recovery Recovery      `json:"-"`
	Ending
}

// Shown is what the chat shows of the answer.
func (o Outcome) Shown() string { return cmp.Or(o.Short, o.Text) }

// ActiveTurn is a turn that runs, for what its agent does through tools of ductor.
type ActiveTurn struct {
	Turn
	Request cli.Request
	// Life is over when the turn is to end.
	Life context.Context
	// Hide takes secrets out of a text.
	Hide func(text string) string
	// Help counts another agent that works for the turn. What it gives ends when the turn's own agent has ended, and the turn is not
	// over before leave is called. ErrNoTurn if that agent has ended.
	Help func(ctx context.Context) (_ context.Context, leave func(), err error)
}

// ActiveTurns is what the tools of ductor need of the turns that run. *conversation.Engine implements it.
type ActiveTurns interface {
	// ActiveTurn is the turn that an agent runs in a conversation; ErrNoTurn if it runs none there.
	ActiveTurn(in ConversationID, agent cli.Agent) (ActiveTurn, error)
	// AskUser has a user decide or answer for a running turn, and waits for that; ErrNoTurn if the turn does not run. asked is a
	// cli.ApprovalAsked or a cli.QuestionAsked without an id. The end of ctx withdraws it.
	AskUser(ctx context.Context, turn cli.TurnID, asked cli.Event) (cli.Decision, error)
	// AskFor is AskUser for what another agent asks that works for the turn. The rules of the conversation for that agent count, and it
	// is denied a tool that its lists do.
	AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error)
}

// Helper is another agent that works for a running turn.
type Helper struct {
	Agent     cli.Agent
	ToolLists []cli.ToolList // that limit its tools together
}

// Ending is what follows the answer of a turn that ended.
type Ending struct {
	Announce Announcement `json:"announce,omitempty"`
	Short    string       `json:"short,omitempty"` // what the chat shows of a long answer; empty: all of it
	Steps    int          `json:"steps,omitempty"` // that are kept of the turn
	Fill     cli.Fill     `json:"fill,omitzero"`   // of the agent's context, after the turn
	Changed  `json:"changed,omitzero"`
}

// Announcement is the message that a turn ends with, besides its card.
type Announcement string

// The announcements.
const (
	NotAnnounced Announcement = ""
	Announced    Announcement = "sound"
	Muted        Announcement = "silent" // in quiet hours
)

// Step is one thing that an agent did in a turn: it used a tool, or changed a file.
type Step struct {
	Number   int    // in its turn, from 1 on
	Tool     string // the agent's own name of it; empty for a changed file
	Title    string // the whole command or path
	Duration time.Duration
	ExitCode *int   // nil where the tool has none
	Err      string // empty when it went well
	Change   cli.ChangeKind
	Output   string // of a tool, or the diff of a file in unified form; empty in a list
	Size     int    // bytes of Output
	Lost     int    // bytes of the beginning that are not kept
}

// StepStore keeps the steps of turns. internal/store implements it.
type StepStore interface {
	// SaveSteps stores the steps of a turn, in place of those it has. It shares a transaction.
	SaveSteps(ctx context.Context, turn cli.TurnID, at time.Time, steps []Step) error
	// StepsOf lists the steps of a turn without their outputs.
	StepsOf(ctx context.Context, turn cli.TurnID) ([]Step, error)
	// Step is a step with its output; ErrNoStep.
	Step(ctx context.Context, turn cli.TurnID, number int) (Step, error)
}

// Steps shows what an agent did. ErrElsewhere for a turn of another conversation, ErrNoTurn, ErrNoStep.
type Steps interface {
	StepsOf(ctx context.Context, in ConversationID, turn cli.TurnID) ([]Step, error)
	Step(ctx context.Context, in ConversationID, turn cli.TurnID, number int) (Step, error)
	// AnswerOf gives what the agent said.
	AnswerOf(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
}
