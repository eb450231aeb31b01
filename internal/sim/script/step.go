package script

import "time"

// Step is one thing to do. The concrete types below are all there are.
type Step interface{ step() }

// Text streams Chunks as answer text, with Delay before each but the first.
type Text struct {
	Chunks []string
	Delay  time.Duration
}

// Think streams Chunks as reasoning.
type Think struct {
	Chunks []string
	Delay  time.Duration
}

// Tool runs Command with the agent's shell tool. With Ask it is one the agent must ask permission for.
type Tool struct {
	Command string
	Ask     bool
	Dir     string // where the model wants it to run, for models that can say so; empty for where the agent works
	As      string // the name under which the model calls the tool, offered or not; empty: as it is offered
}

// Request asks the client for permission, with the fields of a JSON object. Kind is the tool, or the method for Codex.
type Request struct{ Kind, Params string }

// Write writes Body to Path with the agent's file tool.
type Write struct{ Path, Body string }

// Call calls a tool that a server serves to the agent, with a JSON object. The real agents alone have such tools.
type Call struct{ Tool, Args string }

// Question asks the client something in words of its own. The agent says how long the answer is, and with Echo the
// answer itself, in small pieces.
type Question struct {
	Text         string
	Secret, Echo bool
}

// APIError is a failure of the model's API with an HTTP status.
type APIError struct {
	Status     int
	RetryAfter time.Duration // 0 is none told
	Times      int           // how often it fails before it works; 0 is for ever
	Delay      time.Duration // how long the agent waits between tries; 0 is its own schedule
	Message    string
}

// Background runs Command with the agent's shell tool, which does not wait for its end. When it has ended the agent takes
// a turn of its own, and says Chunks. Claude's live sessions only.
type Background struct {
	Command string
	Chunks  []string
}

// Sleep is a pause.
type Sleep struct{ For time.Duration }

// Hang is silence for ever.
type Hang struct{}

// Drop breaks the connection to the model in mid text; a scripted agent dies of it.
type Drop struct {
	Times int // how often before it holds; 0 is for ever
}

// End has the model end its answer for another reason than that it is done.
type End struct {
	Reason EndReason
	Times  int // how often; 0 is for ever
}

// EndReason is why a model ends an answer.
type EndReason string

// The reasons of an End.
const (
	EndMaxTokens EndReason = "max-tokens" // the answer became too long
	EndRefusal   EndReason = "refusal"    // the model, or a filter, refuses to go on
	EndUnsaid    EndReason = "unsaid"     // the stream ends in good order without saying why
)

// Crash ends the agent with Code and a last word on standard error.
type Crash struct {
	Code   int
	Stderr string
}

// Silent ends the agent with success and without a result.
type Silent struct{}

// Garbage prints Bytes bytes that are no protocol.
type Garbage struct{ Bytes int }

// LongLine prints one valid event that is Bytes long at least.
type LongLine struct{ Bytes int }

// EndlessLine prints a line that never ends.
type EndlessLine struct{}

// IgnoreTerm makes the agent ignore SIGTERM from here on.
type IgnoreTerm struct{}

// HoldPipe starts a process that keeps standard output open For that long.
type HoldPipe struct{ For time.Duration }

// Late says Text so long after the reply that ends the turn.
type Late struct {
	Text  string
	After time.Duration
}

// Compact shortens the agent's context.
type Compact struct{}

// RetryText streams Chunks, gives them up, and goes on in another message.
type RetryText struct {
	Chunks []string
	Delay  time.Duration
}

// History answers with the plain part of the session's earlier prompts, one a line.
type History struct{}

// Usage says what the turn counts. Cost is in US dollars, and negative where it was not given.
type Usage struct {
	Input, Output, Cached int64
	Cost                  float64
}

func (Text) step()        {}
func (Think) step()       {}
func (Tool) step()        {}
func (Request) step()     {}
func (Write) step()       {}
func (Call) step()        {}
func (Question) step()    {}
func (APIError) step()    {}
func (Background) step()  {}
func (Sleep) step()       {}
func (Hang) step()        {}
func (Drop) step()        {}
func (End) step()         {}
func (Crash) step()       {}
func (Silent) step()      {}
func (Garbage) step()     {}
func (LongLine) step()    {}
func (EndlessLine) step() {}
func (IgnoreTerm) step()  {}
func (HoldPipe) step()    {}
func (Late) step()        {}
func (Compact) step()     {}
func (RetryText) step()   {}
func (History) step()     {}
func (Usage) step()       {}
