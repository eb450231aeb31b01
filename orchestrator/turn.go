package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
)

// TurnState is the state of a turn. A turn changes only from a state to a later one in the list below.
type TurnState string

// TurnState values.
const (
	TurnQueued      TurnState = "queued"
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"        // the agent ended the turn without an error
	TurnFailed      TurnState = "failed"      // the agent ended the turn with an error
	TurnAborted     TurnState = "aborted"     // a user aborted the turn
	TurnCancelled   TurnState = "cancelled"   // a user removed it from the queue, or its user may no longer use ductor
	TurnSteered     TurnState = "steered"     // ductor added the prompt to the running turn Entry.Into
	TurnInterrupted TurnState = "interrupted" // ductor crashed while the turn ran; only a user can run the prompt again
)

// Attachment is a file from a user. ductor has stored it on this machine.
type Attachment struct {
	Path  string `json:"path"` // absolute, inside the uploads directory
	Name  string `json:"name"` // the sender's file name, without unsafe characters
	MIME  string `json:"mime"`
	Image bool   `json:"image,omitempty"` // an image that agents can show to the model
}

// String returns the text with which a prompt refers to the file.
func (a Attachment) String() string {
	return fmt.Sprintf("[Attached file %q (%s): %s]", a.Name, a.MIME, a.Path)
}

// Paths returns the path of each file.
func Paths(files []Attachment) []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// Prompt is one request of a user. It may consist of several messages: an album, or a long text that Telegram split.
type Prompt struct {
	Conversation ConversationID
	Person       PersonID
	Text         string
	Attachments  []Attachment
	Message      int // the user's message to which ductor replies
	// PartOf is the ID of an earlier message to which this prompt belongs, or 0. For example, forwarded messages belong
	// to the comment that the user sent before them. The store does not contain PartOf.
	PartOf  int
	Updates []int64 // the Telegram updates that contain the prompt
	Rights  Rights  // permissions of the agent that runs the prompt
	// Quotes is an entry of the session that Text already quotes, so the history can leave it out. Empty means none.
	Quotes cli.TurnID
	// Arrived is when the first message of the prompt arrived. If Arrived is zero, ductor uses the time at which the
	// prompt was submitted. The store contains this time only as Turn.Queued.
	Arrived time.Time
}

// HasPicture reports whether the prompt has an image that agents show to the model.
func (p Prompt) HasPicture() bool {
	return slices.ContainsFunc(p.Attachments, func(a Attachment) bool { return a.Image })
}

// OnlyText returns the text of the prompt, followed by a line for each attached file.
func (p Prompt) OnlyText() string {
	text := p.Text
	for _, a := range p.Attachments {
		text += "\n" + a.String()
	}
	return text
}

// Entry is the part of a Turn that describes its place in the session. The entries of a session are its turns, and the
// questions that were asked outside of turns. Each entry is stored as a Turn.
type Entry struct {
	Kind    EntryKind
	Role    string      // name of the agent's configured role; empty for none
	Account cli.Account // the account that the agent uses
	Asks    cli.TurnID  // the turn whose agent asked the question; empty if a user asked
	Into    cli.TurnID  // the running turn to which ductor added the prompt; only for TurnSteered
	// Number is the position of the entry in its session. An entry gets its number when it ends; before, Number is 0.
	Number int64
	UpTo   int64 // Number of the newest entry in the history that the agent got with the prompt
	// Seen means that the agent may already have seen this entry. handoff.Knowledge sets Seen, and the history in the
	// prompt mentions it to the agent. The store does not contain Seen.
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

// Turn is an entry of a session: one prompt with its outcome.
type Turn struct {
	ID      cli.TurnID
	Entry   Entry
	Session SessionID  // empty until the turn starts, if the conversation had no session yet
	Again   cli.TurnID // an earlier turn whose prompt this turn repeats; empty for none
	Prompt  Prompt
	Wants   Wants // settings of an Order; they replace those of the conversation
	State   TurnState
	Agent   cli.Agent
	Model   cli.ModelID
	Sandbox cli.Sandbox // where the turn runs; set when it starts; empty means this host
	Queued  time.Time   // when the prompt arrived
	Started time.Time   // zero before the start
	Ended   time.Time   // zero before the end
	Outcome Outcome     // valid after the end
	// Aborting means that a user aborted the turn, and it has not ended yet.
	Aborting bool
	// Delivered means that the chat shows the outcome, or a message which says that the outcome may be incomplete.
	Delivered bool
	// Bypass is the time at which the permission mode bypass ends for this turn. It is set when the turn starts. In
	// other modes, Bypass is zero.
	Bypass time.Time
	// Crashes counts how often ductor crashed while the turn ran, or before the chat showed its outcome.
	Crashes int
}

// Requeued returns a steered turn as a queued turn of the given conversation, without the data of the running turn to
// which ductor sent the prompt. See Store.UnsteerTurn.
func (t Turn) Requeued(in ConversationID) Turn {
	t.State, t.Prompt.Conversation, t.Started, t.Ended, t.Delivered = TurnQueued, in, time.Time{}, time.Time{}, false
	t.Entry, t.Agent, t.Model, t.Sandbox = Entry{}, "", "", ""
	return t
}

// MayJoin reports whether ductor may add the prompt of this waiting turn to a running turn. runningMessage is the ID of
// the message that started the running turn. A command may not join, and neither may a prompt without the rights of the
// chat. A prompt that names an agent may join only if the prompt belongs to that message (see Prompt.PartOf): then the
// running turn has the named agent.
func (t Turn) MayJoin(runningMessage int) bool {
	together := t.Prompt.PartOf != 0 && t.Prompt.PartOf == runningMessage
	return t.Wants.Task == cli.TaskPrompt && t.Prompt.Rights.OfChat() && (t.Wants.Agent == "" || together)
}

// Outcome is the result of a turn: the answer, the failure, and other facts that the chat shows.
type Outcome struct {
	State   TurnState   `json:"-"`
	Text    string      `json:"-"` // the whole answer
	Agent   cli.Agent   `json:"agent,omitempty"`
	Model   cli.ModelID `json:"model,omitempty"`
	Usage   cli.Usage   `json:"-"`
	CostUSD float64     `json:"cost_usd,omitempty"`
	// Duration is the time from the arrival of the prompt to the end of the turn.
	Duration time.Duration `json:"duration_ns,omitempty"`
	Denials  []cli.Denial  `json:"denials,omitempty"`
	Fallback bool          `json:"fallback,omitempty"`
	// Failure is a sentence for the chat that explains the failure. It is empty on success.
	Failure  string   `json:"failure,omitempty"`
	Recovery Recovery `json:"-"`
	Ending
}

// Shown returns the part of the answer that the chat shows.
func (o Outcome) Shown() string { return cmp.Or(o.Short, o.Text) }

// ActiveTurn is a running turn, as ductor's MCP tools see it when the turn's agent calls them.
type ActiveTurn struct {
	Turn    Turn
	Request cli.Request
	// Life is cancelled when the turn ends or must end.
	Life context.Context
	// Hide removes secrets from a text and returns the rest.
	Hide func(text string) string
	// Help registers another agent that works for the turn. When the other agent has finished, the caller must call
	// leave; until then, the turn does not end. The returned context is cancelled when the turn's own agent ends. If
	// the turn's own agent has ended already, Help returns ErrNoTurn.
	Help func(ctx context.Context) (_ context.Context, leave func(), err error)
}

// ActiveTurns lets ductor's tools find and use running turns. *conversation.Engine implements it.
type ActiveTurns interface {
	// ActiveTurn returns the turn that this agent runs in a conversation, or ErrNoTurn.
	ActiveTurn(in ConversationID, agent cli.Agent) (ActiveTurn, error)
	// AskUser shows a request or a question of a running turn to users, and waits for their decision. The event is a
	// cli.ApprovalAsked or a cli.QuestionAsked without an ID. If ctx is done, AskUser withdraws the request. It returns
	// ErrNoTurn if the turn is not running.
	AskUser(ctx context.Context, turn cli.TurnID, asked cli.Event) (cli.Decision, error)
	// AskFor is like AskUser, for a request of another agent that works for the turn. The conversation's rules for the
	// other agent apply. AskFor denies tools that the lists in h.ToolLists forbid.
	AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error)
}

// Helper is another agent that works for a turn.
type Helper struct {
	Agent     cli.Agent
	ToolLists []cli.ToolList // lists of allowed and forbidden tools; all of them apply
}

// Ending contains the facts that the chat shows below the answer of a turn.
type Ending struct {
	Announce Announcement `json:"announce,omitempty"`
	Short    string       `json:"short,omitempty"` // the shortened answer that the chat shows, if the answer is long
	Steps    int          `json:"steps,omitempty"` // number of stored steps
	cli.Standing
	Changed `json:"changed,omitzero"`
}

// Announcement selects the extra message that tells the user that a turn has ended.
type Announcement string

// Announcement values.
const (
	NotAnnounced Announcement = ""
	Announced    Announcement = "sound"
	Muted        Announcement = "silent" // the message makes no sound, because of quiet hours
	// Unwanted means that the user does not want to see the outcome. ductor only removes the buttons from the card. If
	// the answer names files, a message says that they were not sent.
	Unwanted Announcement = "none"
)

// Step is one action of an agent during a turn: a tool call or a change of a file.
type Step struct {
	Number   int    // number within the turn, from 1
	Tool     string // the agent's name for the tool; empty for a change of a file
	Title    string // the whole command or path
	Input    string // arguments of the tool as JSON, with long texts shortened; empty if the agent does not report them
	Duration time.Duration
	ExitCode *int   // exit code of the tool; nil if it has none
	Err      string // empty on success
	Change   cli.ChangeKind
	Output   string // output of the tool, or unified diff of the file; StepsOf leaves it empty
	Size     int    // length of Output in bytes
	Lost     int    // number of bytes cut from the beginning of Output
	Offset   int    // length of the answer before the step, in bytes
}

// StepStore stores the steps of turns. internal/store implements it.
type StepStore interface {
	// SaveSteps stores the steps of a turn, and replaces the steps that were stored before. The store may combine this
	// write with other writes in one transaction.
	SaveSteps(ctx context.Context, turn cli.TurnID, at time.Time, steps []Step) error
	// StepsOf lists the steps of a turn. It leaves the Output of each step empty.
	StepsOf(ctx context.Context, turn cli.TurnID) ([]Step, error)
	// Step returns a step with its output, or ErrNoStep.
	Step(ctx context.Context, turn cli.TurnID, number int) (Step, error)
}

// Steps returns what agents did in turns. Its methods return ErrElsewhere for a turn of another conversation, ErrNoTurn
// for an unknown turn, and ErrNoStep for an unknown step.
type Steps interface {
	StepsOf(ctx context.Context, in ConversationID, turn cli.TurnID) ([]Step, error)
	Step(ctx context.Context, in ConversationID, turn cli.TurnID, number int) (Step, error)
	// AnswerOf returns the whole answer of a turn.
	AnswerOf(ctx context.Context, in ConversationID, turn cli.TurnID) (string, error)
}
