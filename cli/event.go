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

// SessionStarted names the agent's session and its model. The event comes again if one of its values changes.
type SessionStarted struct {
	AgentSessionID AgentSessionID
	Model          ModelID
	Title          string // the agent's own title of the session, in one line; empty if it reports none
	// Forgets is set if the agent removes the prompt of a failed turn from its session. Only PromptAccepted then proves
	// that the session contains the prompt.
	Forgets bool
	// Mute is set for an agent that does not report failures and retries of its model's API.
	Mute bool
}

// PromptAccepted is the event that the agent's session contains the request's prompt, and everything that precedes the
// prompt in the request. The agent's next turn knows them, however this turn ends. The event comes at most once in a
// turn.
type PromptAccepted struct{}

// ShowsAcceptance reports whether an event proves that the agent has accepted the prompt. Answers and tool calls prove
// it too.
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
	// Parent is the tool call that started the sub-agent, if a sub-agent uses this tool. Otherwise it is empty.
	Parent ToolID
	// At is the start time. Zero means now. Events of a resumed turn have a time in the past.
	At time.Time
}

// ToolChanged replaces the name, the title and the input of a running tool. Some agents name a tool before its input
// exists.
type ToolChanged struct{ ToolStarted }

// WholeTitle returns the whole command if the tool runs a command, and the title otherwise.
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

// Values of ToolEnded.Err that screens translate.
const (
	ToolCutShort = "the turn ended before the tool did" // the turn ended before the tool
	ToolDenied   = "it was not allowed"
	ToolUntold   = "the agent does not say how it ended" // the tool may have succeeded
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

// FileChanged is a change of a file by the agent. Diff is in unified format. It is empty if the agent provides no diff.
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

// PlanState is the state of a PlanStep.
type PlanState string

// PlanState values. Any other value means PlanOpen.
const (
	PlanOpen   PlanState = "open"
	PlanActive PlanState = "active"
	PlanDone   PlanState = "done"
)

// PlanStateOf parses the state of a step as the agent reports it. It returns PlanOpen for unknown states.
func PlanStateOf(status string) PlanState {
	switch status {
	case "completed":
		return PlanDone
	case "in_progress", "inProgress":
		return PlanActive
	}
	return PlanOpen
}

// StatusKind describes an activity of an agent other than text and tools.
type StatusKind string

// StatusKind values.
const (
	// StatusStarting means that the agent starts. SessionStarted ends this status. If Detail names the reason of a
	// delay, StatusIdle ends it.
	StatusStarting   StatusKind = "starting"
	StatusWaiting    StatusKind = "waiting"    // the model has not responded yet
	StatusCompacting StatusKind = "compacting" // shortening its context
	StatusRetrying   StatusKind = "retrying"   // the model's API failed, and the agent retries
	StatusIdle       StatusKind = "idle"       // the previous status is over
	StatusWarning    StatusKind = "warning"    // a message of the agent that is not part of the answer
	StatusPaused     StatusKind = "paused"     // ductor runs the turn again after a pause, which the user can end
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

// HandedOver reports the part of the session's history that the agent received before its prompt: turns of other
// agents.
type HandedOver struct {
	To     Agent
	Model  ModelID // empty if the agent chose it
	Turns  int
	Tokens int // an estimate
	// LeftOut is the number of oldest turns that did not fit. Shortened is set if the middle of a turn was removed.
	LeftOut   int
	Shortened bool
}

// Substituted is the event that the agent By runs the turn in place of another agent.
type Substituted struct {
	By  Agent
	Why *Failure // the other agent's failure
}

// RateLimited warns that a limit is reached. Agents that report no percentage also emit it near a limit. ResetAt is
// zero if the agent does not report it.
type RateLimited struct{ ResetAt time.Time }

// LimitsReported reports how much of its plan the agent's account has used. Dialects set only Limits, with the limits
// that the agent has just reported. Package orchestrator/turn adds the other limits of the account.
type LimitsReported struct{ AccountLimits }

// CaughtUp separates the events of an adopted turn: events before it are from the time without ductor, events after it
// are new. It comes once.
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
