package cli

import (
	"encoding/json"
	"time"
)

// ToolID ties a ToolEnded to its ToolStarted. It is unique within a turn.
type ToolID string

// Event is one thing that happened in a turn. The concrete types below are all there are.
//
// The order of a turn, held by clitest.Conformance for every provider:
//   - SessionStarted comes first, CaughtUp aside, unless the turn fails before the agent names its session;
//   - PromptAccepted comes once in a turn that the agent took up, after SessionStarted;
//   - every ToolStarted gets one ToolEnded, also when the process dies, but not in a turn that goes on without ductor;
//   - folding TextDelta and TextRetracted (see Answer) gives Result.Text;
//   - one Result comes last, and nothing after it.
type Event interface{ event() }

// SessionStarted names the agent's session and the model that answers.
type SessionStarted struct {
	AgentSessionID AgentSessionID
	Model          ModelID
	// Forgets is set for an agent that takes the prompt of a turn that did not go well out of its session: only PromptAccepted shows that it
	// knows the turn.
	Forgets bool
	// Mute is set for an agent that does not say when its model's API failed and is asked again.
	Mute bool
}

// PromptAccepted says that the prompt is in the agent's session, with all that came before it in the request: the agent's next turn
// knows it, however this one ends. It comes at most once in a turn.
type PromptAccepted struct{}

// ShowsAcceptance reports whether an event shows that the agent has accepted the prompt: one that answers or works has.
func ShowsAcceptance(ev Event) bool {
	switch ev := ev.(type) {
	case PromptAccepted, TextDelta, ThinkingDelta, ToolStarted, FileChanged, PlanChanged, ApprovalAsked, QuestionAsked:
		return true
	case Result:
		return ev.Err == nil && !ev.Aborted && !ev.Detached
	}
	return false
}

// TextDelta adds Text to the end of the answer.
type TextDelta struct{ Text string }

// TextRetracted takes the last Bytes bytes off the answer: a retry replaced what had been streamed.
type TextRetracted struct{ Bytes int }

// ThinkingDelta is reasoning, or text that only announces a tool. It is never part of the answer.
type ThinkingDelta struct{ Text string }

// ToolStarted says that the agent began to use a tool.
type ToolStarted struct {
	ID    ToolID
	Name  string          // the agent's own name of the tool, such as "Bash"
	Title string          // one line for people: the command, the path, the query
	Input json.RawMessage // whole input as the agent gave it; may be nil
	// Parent is set when a sub-agent uses the tool: the tool that started the sub-agent.
	Parent ToolID
	// At is when it began; zero means just now. It lies in the past where a turn is caught up with.
	At time.Time
}

// ToolEnded says how a tool ended. Err is empty when it went well; see Failed.
type ToolEnded struct {
	ID       ToolID
	Output   string // as the agent reports it, possibly long
	ExitCode *int   // nil where the tool has none
	Duration time.Duration
	Err      string // one line
}

// The Errs that a screen says in words of its own.
const (
	ToolCutShort = "the turn ended before the tool did" // it had not ended when its turn did
	ToolDenied   = "it was not allowed"
	ToolUntold   = "the agent does not say how it ended" // it may have gone well
	ToolGoesOn   = "it goes on in the background"
)

// Failed reports whether the tool is known to have failed.
func (t ToolEnded) Failed() bool {
	return t.Err != "" && t.Err != ToolUntold && t.Err != ToolGoesOn || t.ExitCode != nil && *t.ExitCode != 0
}

// ChangeKind says what happened to a file.
type ChangeKind string

// The kinds of change an agent reports.
const (
	FileAdded   ChangeKind = "add"
	FileUpdated ChangeKind = "update"
	FileDeleted ChangeKind = "delete"
)

// FileChanged says that the agent changed a file. Diff is unified, and empty where the agent gives none.
type FileChanged struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Diff string     `json:"diff,omitempty"`
}

// PlanChanged is the agent's list of what it has to do, as it is from now on.
type PlanChanged struct{ Steps []PlanStep }

// PlanStep is an entry of a plan.
type PlanStep struct {
	Text  string
	State PlanState
}

// PlanState says how far a step of a plan is.
type PlanState string

// The states of a step. Anything else means PlanOpen.
const (
	PlanOpen   PlanState = "open"
	PlanActive PlanState = "active"
	PlanDone   PlanState = "done"
)

// PlanStateOf is a state as agents write it; what is not known is open.
func PlanStateOf(status string) PlanState {
	switch status {
	case "completed":
		return PlanDone
	case "in_progress", "inProgress":
		return PlanActive
	}
	return PlanOpen
}

// StatusKind says what an agent is busy with when it shows neither text nor tools.
type StatusKind string

// The kinds of status.
const (
	StatusStarting   StatusKind = "starting"   // the agent starts; SessionStarted ends it, or StatusIdle where Detail names what it waits for
	StatusWaiting    StatusKind = "waiting"    // asked the model, nothing came yet
	StatusCompacting StatusKind = "compacting" // shortening its context
	StatusRetrying   StatusKind = "retrying"   // the model's API failed and is asked again
	StatusIdle       StatusKind = "idle"       // the former status is over
	StatusWarning    StatusKind = "warning"    // the agent has something to say that is no answer
	StatusPaused     StatusKind = "paused"     // the turn runs once more after a pause, which the user can end
)

// Status is what the agent is busy with. Detail is one line for people and may be empty.
type Status struct {
	Kind   StatusKind
	Detail string
	Retry  Retry `json:",omitzero"` // of StatusRetrying
}

// Retry says why and when the model is asked again; what the agent does not say is zero.
type Retry struct {
	Why           FailureKind
	Attempt, Most int
	In            time.Duration // how long the agent waits before it
}

// CompactBoundary says that the agent shortened its context.
type CompactBoundary struct{ PreTokens int }

// HandedOver says how much an agent was told of the session before its prompt, because other agents ran those turns.
type HandedOver struct {
	To     Agent
	Model  ModelID // empty where the agent chose it
	Turns  int
	Tokens int // an estimate
	// LeftOut are the oldest turns, for which there was no room. Shortened is set if one of Turns lacks its middle.
	LeftOut   int
	Shortened bool
}

// Substituted says that By runs the turn in place of another agent.
type Substituted struct {
	By  Agent
	Why *Failure // of the other
}

// RateLimited is a warning that a limit is near or reached. ResetAt is zero where the agent does not say.
type RateLimited struct{ ResetAt time.Time }

// CaughtUp says that all that the agent said while ductor did not listen has been told, and what follows happens now. It
// comes once, in a turn that was adopted.
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
func (Result) event()          {}

// Answer folds text events into the answer they make.
type Answer struct{ text []byte }

// Add folds ev in; events without text change nothing.
func (a *Answer) Add(ev Event) {
	switch ev := ev.(type) {
	case TextDelta:
		a.text = append(a.text, ev.Text...)
	case TextRetracted:
		a.text = a.text[:max(len(a.text)-ev.Bytes, 0)]
	}
}

// String is the answer so far.
func (a *Answer) String() string { return string(a.text) }
