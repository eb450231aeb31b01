package script

import "time"

// Step is one action. All its types are below.
type Step interface{ step() }

// Text streams Chunks as answer text, with Delay between them.
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
	Dir     string // the directory that the model requests, if its tool has such a field; empty for the agent's own
	As      string // the tool's name in the model's call, offered or not; empty for the offered name
}

// Request asks the client for permission, with the fields of a JSON object. Kind is the tool, or the method for
// Codex.
type Request struct{ Kind, Params string }

// Write writes Body to Path with the agent's file tool.
type Write struct{ Path, Body string }

// Call calls a tool of an MCP server with a JSON object. Only real agents have such tools.
type Call struct{ Tool, Args string }

// Question asks the client a question in the agent's own words. The agent reports the length of the answer. With Echo
// it repeats the answer in small pieces.
type Question struct {
	Text         string
	Secret, Echo bool
}

// APIError is a failure of the model's API with an HTTP status.
type APIError struct {
	Status     int
	RetryAfter time.Duration // 0 for none
	Times      int           // number of failures before a success; 0 to fail always
	Delay      time.Duration // pause of the agent between attempts; 0 for its own schedule
	Message    string
}

// Background runs Command with the agent's shell tool without waiting for its end. After that the agent starts a turn
// of its own with Chunks. Only Claude's live sessions support it.
type Background struct {
	Command string
	Chunks  []string
}

// Sleep pauses the agent.
type Sleep struct{ For time.Duration }

// Hang pauses the agent forever.
type Hang struct{}

// Drop breaks the connection to the model within a text. A scripted agent then ends.
type Drop struct {
	Times int // number of breaks; 0 to break always
}

// End makes the model end its answer early.
type End struct {
	Reason EndReason
	Times  int // number of times; 0 for always
}

// EndReason is the reason why a model ends an answer.
type EndReason string

// Reasons of an End.
const (
	EndMaxTokens EndReason = "max-tokens" // the answer became too long
	EndRefusal   EndReason = "refusal"    // the model or a filter refuses to continue
	EndUnsaid    EndReason = "unsaid"     // the stream ends properly without a reason
)

// Crash ends the agent with Code and a message on standard error.
type Crash struct {
	Code   int
	Stderr string
}

// Silent ends the agent with success and without a result.
type Silent struct{}

// Garbage prints Bytes bytes that violate the protocol.
type Garbage struct{ Bytes int }

// LongLine prints one valid event of at least Bytes bytes.
type LongLine struct{ Bytes int }

// EndlessLine prints a line that never ends.
type EndlessLine struct{}

// IgnoreTerm makes the agent ignore SIGTERM from now on.
type IgnoreTerm struct{}

// HoldPipe starts a process that keeps standard output open for some time.
type HoldPipe struct{ For time.Duration }

// Late sends Text some time after the reply that ends the turn.
type Late struct {
	Text  string
	After time.Duration
}

// Compact shortens the agent's context.
type Compact struct{}

// RetryText streams Chunks, discards them, and continues in another message.
type RetryText struct {
	Chunks []string
	Delay  time.Duration
}

// History answers with the plain part of the session's earlier prompts, one per line.
type History struct{}

// Usage is the usage of the turn. Cost is in US dollars, and negative if unknown.
type Usage struct {
	Input, Output, Cached int64
	Cost                  float64
}

// Limits reports the limits of the agent's plan, as a JSON object in the agent's own format: rate_limit_info of Claude,
// rateLimits of Codex's app server.
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
