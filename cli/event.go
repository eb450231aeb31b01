package cli

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// ToolID connects a ToolEnded with its ToolStarted. It is unique within a turn.
type ToolID string

// Event is one event of a turn. All implementations are below.
//
// The order of events in a turn, which clitest.Conformance checks for every provider:
//   - SessionStarted comes first, apart from CaughtUp, unless the turn fails before the agent names its session.
//   - PromptAccepted comes once in a turn that the agent accepted, after SessionStarted.
//   - Every ToolStarted gets one ToolEnded, even if the process dies, except in a turn that continues without ductor.
//     ToolChanged comes only between the two.
//   - Folding TextDelta and TextRetracted (see Answer) results in Result.Text.
//   - One Result comes last, and nothing after it.
type Event interface{ event() }

// SessionStarted names the agent's session and its model. It comes again if one of its values changes.
type SessionStarted struct {
	AgentSessionID AgentSessionID
	Model          ModelID
	Title          string // the agent's own title of the session, in one line; empty if it reports none
	// Forgets is set for an agent that removes the prompt of a failed turn from its session. Only PromptAccepted then
	// proves that the agent knows the turn.
	Forgets bool
	// Mute is set for an agent that does not report failures and retries of its model's API.
	Mute bool
}

// PromptAccepted is the event that the agent's session contains the prompt, and everything before it in the request.
// The agent's next turn knows it, however this turn ends. The event comes at most once in a turn.
type PromptAccepted struct{}

// ShowsAcceptance reports whether an event proves that the agent has accepted the prompt. An answer or a tool proves
// it.
func ShowsAcceptance(ev Event) bool {
	switch ev := ev.(type) {
	case PromptAccepted, TextDelta, ThinkingDelta, ToolStarted, FileChanged, PlanChanged, ApprovalAsked, QuestionAsked:
		return true
	case Result:
		return ev.Err == nil && !ev.Aborted && !ev.Detached
	}
	return false
}

// TextDelta appends Text to the answer.
type TextDelta struct{ Text string }

// TextRetracted removes the last Bytes bytes of the answer, because a retry replaces streamed text.
type TextRetracted struct{ Bytes int }

// ThinkingDelta is reasoning, or text that announces a tool. It is never part of the answer.
type ThinkingDelta struct{ Text string }

// ToolStarted is the start of a tool call.
type ToolStarted struct {
	ID    ToolID
	Name  string          // the agent's own name for the tool, such as "Bash"
	Title string          // one line for users: the command, the path, the query
	Input json.RawMessage // whole input as the agent sent it; may be nil
	// Parent is set if a sub-agent uses the tool. It is the tool that started the sub-agent.
	Parent ToolID
	// At is the start time; zero means just now. When a resumed turn is replayed, At is in the past.
	At time.Time
}

// ToolChanged replaces the name, the title and the input of a tool that has started and not ended: some agents name a
// tool before its input exists.
type ToolChanged struct{ ToolStarted }

// WholeTitle returns the whole command of a tool that runs one, and the title of any other tool.
func (t ToolStarted) WholeTitle() string {
	var words []string // some agents list them
	for _, l := range Leaves(t.Input) {
		if !l.Unset && (l.Name == "command" || strings.HasPrefix(l.Name, "command[")) {
			words = append(words, l.Value)
		}
	}
	return cmp.Or(strings.Join(words, " "), t.Title)
}

// ToolEnded is the end of a tool call. Err is empty on success; see Failed.
type ToolEnded struct {
	ID       ToolID
	Output   string // as the agent reports it; may be long
	ExitCode *int   // nil if the tool has none
	Duration time.Duration
	Err      string // one line
}

// Values of Err that screens translate.
const (
	ToolCutShort = "the turn ended before the tool did" // the turn ended before the tool
	ToolDenied   = "it was not allowed"
	ToolUntold   = "the agent does not say how it ended" // it may have succeeded
	ToolGoesOn   = "it goes on in the background"
)

// Failed reports whether the tool is known to have failed.
func (t ToolEnded) Failed() bool {
	return t.Err != "" && t.Err != ToolUntold && t.Err != ToolGoesOn || t.ExitCode != nil && *t.ExitCode != 0
}

// ChangeKind is a kind of file change.
type ChangeKind string

// The kinds of file change.
const (
	FileAdded   ChangeKind = "add"
	FileUpdated ChangeKind = "update"
	FileDeleted ChangeKind = "delete"
)

// FileChanged is a change of a file by the agent. Diff is unified; it is empty if the agent provides none.
type FileChanged struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Diff string     `json:"diff,omitempty"`
}

// PlanChanged is the agent's current to-do list.
type PlanChanged struct{ Steps []PlanStep }

// PlanStep is an entry of a plan.
type PlanStep struct {
	Text  string
	State PlanState
}

// PlanState is the state of a step of a plan.
type PlanState string

// PlanState values. Any other value means PlanOpen.
const (
	PlanOpen   PlanState = "open"
	PlanActive PlanState = "active"
	PlanDone   PlanState = "done"
)

// PlanStateOf parses an agent's state of a step; unknown states are open.
func PlanStateOf(status string) PlanState {
	switch status {
	case "completed":
		return PlanDone
	case "in_progress", "inProgress":
		return PlanActive
	}
	return PlanOpen
}

// StatusKind is an activity of an agent during which it shows neither text nor tools.
type StatusKind string

// The kinds of status.
const (
	// StatusStarting: the agent starts. It ends with SessionStarted. If Detail names something for which the agent
	// waits, it ends with StatusIdle.
	StatusStarting   StatusKind = "starting"
	StatusWaiting    StatusKind = "waiting"    // the model has not responded yet
	StatusCompacting StatusKind = "compacting" // shortening its context
	StatusRetrying   StatusKind = "retrying"   // the model's API failed, and the agent retries
	StatusIdle       StatusKind = "idle"       // the previous status is over
	StatusWarning    StatusKind = "warning"    // a message of the agent that is not part of the answer
	StatusPaused     StatusKind = "paused"     // the turn runs again after a pause, which the user can end
)

// Status is an activity of the agent. Detail is one line for users and may be empty.
type Status struct {
	Kind   StatusKind
	Detail string
	Retry  Retry `json:",omitzero"` // for StatusRetrying
}

// Retry describes a retry of the model. Fields that the agent does not report are zero.
type Retry struct {
	Why           FailureKind
	Attempt, Most int
	In            time.Duration // the agent's pause before the retry
}

// CompactBoundary is the event that the agent shortened its context.
type CompactBoundary struct{ PreTokens int }

// HandedOver reports how much of the session's history an agent received before its prompt. It received the turns that
// other agents ran.
type HandedOver struct {
	To     Agent
	Model  ModelID // empty if the agent chose it
	Turns  int
	Tokens int // an estimate
	// LeftOut is the number of turns, the oldest ones, that did not fit. Shortened is set if a turn in Turns lacks its
	// middle.
	LeftOut   int
	Shortened bool
}

// Substituted is the event that the agent By runs the turn in place of another agent.
type Substituted struct {
	By  Agent
	Why *Failure // the other agent's failure
}

// RateLimited warns that a limit is reached, or that it is near if the agent does not report how near. ResetAt is zero
// if the agent does not report it.
type RateLimited struct{ ResetAt time.Time }

// LimitsReported reports how much of its plan the agent's account has used. The dialects set only Limits, and only
// those that the agent has just reported. The cards get all limits of the account.
type LimitsReported struct {
	AccountLimits
	// Others are accounts of the agent to which a user can switch. They are empty if no limit is near.
	Others []Account
}

// CaughtUp comes once in an adopted turn, after all events from the time in which no ductor was listening. The events
// after it are new.
type CaughtUp struct{}

func (CaughtUp) event()        {}
func (SessionStarted) event()  {}
func (PromptAccepted) event()  {}
func (TextDelta) event()       {}
func (TextRetracted) event()   {}
func (ThinkingDelta) event()   {}
func (ToolStarted) event()     {}
func (ToolEnded) event()       {}
func (FileChanged) event()     {}
func (PlanChanged) event()     {}
func (Status) event()          {}
func (CompactBoundary) event() {}
func (HandedOver) event()      {}
func (Substituted) event()     {}
func (RateLimited) event()     {}
func (LimitsReported) event()  {}
func (Result) event()          {}

// Answer builds the answer from text events.
type Answer struct{ text []byte }

// Add processes ev; events without text change nothing.
func (a *Answer) Add(ev Event) {
	switch ev := ev.(type) {
	case TextDelta:
		a.text = append(a.text, ev.Text...)
	case TextRetracted:
		a.text = a.text[:max(len(a.text)-ev.Bytes, 0)]
	}
}

// String returns the answer so far.
func (a *Answer) String() string { return string(a.text) }
