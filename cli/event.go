package cli

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// ToolID identifies a tool call. A ToolStarted and its ToolEnded have the same ID. The ID is unique within a turn.
type ToolID string

// Event is one event of a turn.
//
// The events of a turn have this order, which clitest.Conformance checks for every provider:
//   - SessionStarted comes first, unless the turn fails before the agent names its session. CaughtUp may precede
//     SessionStarted.
//   - PromptAccepted comes once, after SessionStarted, if the agent accepted the prompt.
//   - Every ToolStarted gets one ToolEnded, even if the process dies. The only exception is a turn from which ductor
//     detached. ToolChanged comes only between ToolStarted and ToolEnded.
//   - The TextDelta and TextRetracted events together produce Result.Text; see Answer.
//   - One Result comes last.
type Event interface{ event() }

// SessionStarted contains the ID and the model of the agent's session. The event comes again if one of its fields
// changes.
type SessionStarted struct {
	AgentSessionID AgentSessionID
	Model          ModelID
	Title          string // the agent's own title of the session, in one line; empty if the agent reports none
	// Forgets is set if the agent removes the prompt of a failed turn from its session. In a session of such an agent,
	// a prompt remains only after PromptAccepted.
	Forgets bool
	// Mute is set if the agent does not report failures and retries of its model's API.
	Mute bool
}

// PromptAccepted reports that the agent stored the request's prompt in its session, with any text that ductor put
// before the prompt. The agent still knows this text in its next turn, even if this turn fails.
type PromptAccepted struct{}

// ShowsAcceptance reports whether an event proves that the agent has accepted the prompt. Such events are answers, tool
// calls and the agent's own confirmation.
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

// TextRetracted removes the last Bytes bytes of the answer, because the model repeats that part.
type TextRetracted struct{ Bytes int }

// ThinkingDelta is a piece of the model's reasoning, or of a text in which the model announces what it will do next. A
// ThinkingDelta is never part of the answer.
type ThinkingDelta struct{ Text string }

// ToolStarted reports that the agent started a tool call.
type ToolStarted struct {
	ID    ToolID
	Name  string          // the agent's own name for the tool, such as "Bash"
	Title string          // one line for users: the command, the path, the query
	Input json.RawMessage // the tool's input as the agent sent it; may be nil
	// Parent is set if a sub-agent uses the tool. It is the ID of the tool call that started the sub-agent.
	Parent ToolID
	// At is the start time; zero means now. In a resumed turn it may be in the past.
	At time.Time
}

// ToolChanged replaces the name, title and input of a running tool, because some agents send the name before the input.
type ToolChanged struct{ ToolStarted }

// WholeTitle returns the unshortened command if the tool runs a command, and Title otherwise.
func (t ToolStarted) WholeTitle() string {
	var words []string // some agents send a command as a list of words
	for _, l := range Leaves(t.Input) {
		if !l.Unset && (l.Name == "command" || strings.HasPrefix(l.Name, "command[")) {
			words = append(words, l.Value)
		}
	}
	return cmp.Or(strings.Join(words, " "), t.Title)
}

// ToolEnded reports that a tool call ended. Err is empty if the tool succeeded; see Failed.
type ToolEnded struct {
	ID       ToolID
	Output   string // output of the tool, as the agent reports it; may be long
	ExitCode *int   // nil if the tool has no exit code
	Duration time.Duration
	Err      string // why the tool failed, in one line
}

// Values of ToolEnded.Err that ductor translates for users.
const (
	ToolCutShort = "the turn ended before the tool did"
	ToolDenied   = "it was not allowed"
	ToolUntold   = "the agent does not say how it ended" // the tool may have succeeded
	ToolGoesOn   = "it goes on in the background"
)

// Failed reports whether the tool certainly failed.
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
	// FileReplaced is the kind of a proposed change that writes a whole file, if the file's current content is unknown.
	// Diff then contains only the new content.
	FileReplaced ChangeKind = "replace"
)

// FileChanged reports that the agent changed a file. Diff is in unified format, or empty if the agent provides none.
type FileChanged struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Diff string     `json:"diff,omitempty"`
}

// PlanChanged contains the agent's current to-do list.
type PlanChanged struct{ Steps []PlanStep }

// PlanStep is an entry of a to-do list.
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

// PlanStateOf parses an agent's name of a PlanState. It returns PlanOpen for unknown names.
func PlanStateOf(status string) PlanState {
	switch status {
	case "completed":
		return PlanDone
	case "in_progress", "inProgress":
		return PlanActive
	}
	return PlanOpen
}

// StatusKind names an activity of an agent while it neither writes text nor uses a tool.
type StatusKind string

// StatusKind values.
const (
	// StatusStarting means that the agent is starting. Without a Detail, the status ends with the event SessionStarted.
	// With a Detail, which explains a delay, the status ends with StatusIdle.
	StatusStarting   StatusKind = "starting"
	StatusWaiting    StatusKind = "waiting"    // the agent waits for the first output of the model
	StatusCompacting StatusKind = "compacting" // the agent shortens its context
	StatusRetrying   StatusKind = "retrying"   // the model's API failed, and the agent will retry
	StatusIdle       StatusKind = "idle"       // the previous status is over
	StatusWarning    StatusKind = "warning"    // the agent printed a message that is not part of the answer
	StatusNotice     StatusKind = "notice"     // ductor itself warns the user
	StatusPaused     StatusKind = "paused"     // ductor will repeat the turn after a pause, which the user can end
)

// Status reports that the agent's activity changed. Detail is one line for users and may be empty.
type Status struct {
	Kind   StatusKind
	Detail string
	Retry  Retry `json:",omitzero"` // set if Kind is StatusRetrying
}

// Retry describes a retry of a call to the model. Fields that the agent does not report are zero.
type Retry struct {
	Why           FailureKind
	Attempt, Most int
	In            time.Duration // time until the retry
}

// CompactBoundary reports that the agent shortened its context.
type CompactBoundary struct{ PreTokens int }

// HandedOver reports that ductor gave the agent those earlier turns of the conversation that other agents answered.
type HandedOver struct {
	To     Agent
	Model  ModelID // empty if the agent chose the model
	Turns  int
	Tokens int // estimated length of the earlier turns
	// LeftOut is the number of the oldest turns that did not fit. Shortened is set if the middle of a turn was removed.
	LeftOut   int
	Shortened bool
}

// Substituted reports that one agent failed, and that another agent, By, runs the turn instead.
type Substituted struct {
	By  Agent
	Why *Failure // the other agent's failure
}

// RateLimited warns that the account has reached a usage limit. Agents that report no percentage also emit it when they
// are near a limit. ResetAt is zero if the agent does not report it.
type RateLimited struct{ ResetAt time.Time }

// LimitsReported contains the usage limits of an account's plan. A provider sets only Limits, to the limits that the
// agent reported. Package orchestrator/turn then adds the limits that are missing from the agent's report.
type LimitsReported struct {
	AccountLimits
	// Others lists the accounts of the agent to which a user can switch. It is empty if no limit is near.
	Others []Account
}

// CaughtUp reports that ductor has processed all output that a resumed turn printed while ductor was not running. The
// events before CaughtUp belong to that output. The events after CaughtUp are new. CaughtUp comes once.
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

// Answer builds the text of the answer from a turn's events.
type Answer struct{ text []byte }

// Add applies an event to the answer. It ignores events that do not change the answer.
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
