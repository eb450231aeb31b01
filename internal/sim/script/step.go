package script

import "time"

// Step is an action of the agent or of the model. It is one of the types below.
type Step interface{ step() }

// Text streams Chunks as text of the answer, with a pause of Delay between them.
type Text struct {
	Chunks []string
	Delay  time.Duration
}

// Think streams Chunks as reasoning.
type Think struct {
	Chunks []string
	Delay  time.Duration
}

// Tool runs Command with the agent's shell tool. If Ask is true, the agent asks for permission first.
type Tool struct {
	Command string
	Ask     bool
	Dir     string // working directory in the model's call; empty if the call names none
	// As replaces the name of the tool in the model's call, even if no such tool exists. If As is empty, the model uses
	// the correct name.
	As string
}

// Request asks the client for permission. Params is a JSON object with the fields of the request. Kind is the tool or,
// for Codex, the method.
type Request struct{ Kind, Params string }

// Write writes Body to Path with the agent's file tool.
type Write struct{ Path, Body string }

// Call calls a tool of an MCP server. Args is a JSON object. Only real agents have such tools.
type Call struct{ Tool, Args string }

// Question makes the agent ask the user a question. The user answers in words. The agent then prints the length of the
// answer. If Echo is set, it prints the answer itself in small pieces.
type Question struct {
	Text         string
	Secret, Echo bool
}

// APIError is a failure of the model's API, with an HTTP status.
type APIError struct {
	Status     int
	RetryAfter time.Duration // value of the header Retry-After; 0 means none
	Times      int           // number of failures before a request succeeds; 0 means that all requests fail
	Delay      time.Duration // pause before the agent tries again; 0 means the agent's usual pause
	Message    string
}

// Background runs Command with the agent's shell tool and does not wait for its end. When the command has ended, the
// agent starts a turn by itself, with Chunks as the answer's text. Only Claude's live sessions support this.
type Background struct {
	Command string
	Chunks  []string
}

// Sleep is a pause of the agent.
type Sleep struct{ For time.Duration }

// Hang is a pause of the agent that never ends.
type Hang struct{}

// Drop breaks the connection to the model in the middle of a text. The scripted agent then exits.
type Drop struct {
	Times int // number of broken connections; 0 means that all connections break
}

// End makes the model end its answer before it is complete.
type End struct {
	Reason EndReason
	Times  int // number of incomplete answers; 0 means that all answers are incomplete
}

// EndReason is the reason why a model ends an answer.
type EndReason string

// EndReason values.
const (
	EndMaxTokens EndReason = "max-tokens" // the answer is too long
	EndRefusal   EndReason = "refusal"    // the model or a filter refuses to continue
	EndUnsaid    EndReason = "unsaid"     // the stream ends normally, but contains no reason
)

// Crash ends the agent with the exit code Code and a message on standard error.
type Crash struct {
	Code   int
	Stderr string
}

// Silent ends the agent with exit code 0, but without a result.
type Silent struct{}

// Garbage prints bytes that are not valid in the protocol.
type Garbage struct{ Bytes int }

// LongLine prints one valid event of at least Bytes bytes.
type LongLine struct{ Bytes int }

// EndlessLine prints a line that never ends.
type EndlessLine struct{}

// IgnoreTerm makes the agent ignore SIGTERM from now on.
type IgnoreTerm struct{}

// HoldPipe starts a process that keeps standard output open for a time, even after the agent has ended.
type HoldPipe struct{ For time.Duration }

// Late sends Text after the message that ends the turn. If File is not empty, the agent first waits until File exists.
// It then waits for the duration After.
type Late struct {
	Text  string
	File  string
	After time.Duration
}

// Compact compacts the agent's context.
type Compact struct{}

// RetryText streams Chunks and discards them. The answer continues in another message.
type RetryText struct {
	Chunks []string
	Delay  time.Duration
}

// History answers with the earlier prompts of the session, one on each line and without their directives.
type History struct{}

// Usage sets the usage of the turn. Cost is in US dollars; a negative value means that it is unknown.
type Usage struct {
	Input, Output, Cached int64
	Cost                  float64
}

// Limits reports usage limits of the agent's account. JSON is an object in the agent's format: rate_limit_info for
// Claude, or rateLimits for Codex's app server.
type Limits struct{ JSON string }

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
func (Limits) step()      {}
