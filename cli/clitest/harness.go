package clitest

import (
	"strconv"
	"testing"
	"time"

	"ductor/cli"
)

// Harness describes a provider that Conformance tests in one mode.
type Harness struct {
	Mode cli.Mode
	// New returns a provider whose agent has its own home, and a template for requests. The template contains Dir, and
	// settings with which the agent runs shell commands without asking. The suite sets Prompt, Env and Resume.
	New func(t *testing.T) (cli.Provider, cli.Request)
	// Over returns a provider that differs from p only in the launcher, which is l. The suite calls Over to simulate a
	// restart of ductor: the new process of ductor has a new launcher for the same directory of runs.
	Over func(p cli.Provider, l cli.Launcher) cli.Provider
	// Grace returns a provider like p with another Timing.Grace. If it is nil, the suite leaves the grace as it is.
	Grace  func(p cli.Provider, grace time.Duration) cli.Provider
	Script Script
	// Cannot lists the cases that this agent does not support.
	Cannot Cannot
	// Real is set for a real agent. It takes seconds of CPU time to start, so most cases run only with scripts/test
	// --long.
	Real bool
	// Plain is set for the scripted agent in the tests of this package. Such an agent runs all cases in all modes.
	Plain bool
	// Patience limits each turn and each Close. Zero means a minute. Real agents may need more.
	Patience time.Duration
}

// Cannot maps a case to the reason why the agent does not support it.
type Cannot map[Case]string

// Leave excludes cases that the agent does not support, all for the same reason.
func (c Cannot) Leave(reason string, cases ...Case) {
	for _, name := range cases {
		c[name] = reason
	}
}

// Script contains the pieces of prompts that make an agent do something. The suite joins them with spaces. Empty fields
// get the commands of ductor's scripted agents.
type Script struct {
	Say      func(text string) string    // the agent answers with this text
	Slowly   func(text string) string    // the agent answers with this text, in many pieces over at least half a second
	Think    func(text string) string    // the agent reasons with this text
	Run      func(command string) string // the agent runs a shell command with its shell tool
	LongLine string                      // the agent prints a valid line of more than a megabyte
	Error    string                      // makes the model's API return an error
	// ErrorKind is the failure that Error must cause. Empty means any failure.
	ErrorKind  cli.FailureKind
	Hang       string // the agent stops printing
	Crash      string // the agent exits at once with an exit code
	Silent     string // the agent exits with code 0 in the middle of the turn
	IgnoreTerm string // the agent ignores SIGTERM from now on
	Recall     string // the agent answers with all prompts of the session
}

// withDefaults sets empty fields to the commands of ductor's scripted agents.
func (s Script) withDefaults() Script {
	quoted := func(name string) func(string) string {
		return func(text string) string { return "[[" + name + " " + strconv.Quote(text) + "]]" }
	}
	if s.Slowly == nil {
		s.Slowly = func(text string) string { return "[[text " + strconv.Quote(text) + " delay=5ms chunk=4]]" }
	}
	for _, f := range []struct {
		field *func(string) string
		name  string
	}{{&s.Say, "text"}, {&s.Think, "think"}, {&s.Run, "tool"}} {
		if *f.field == nil {
			*f.field = quoted(f.name)
		}
	}
	for _, f := range []struct {
		field *string
		part  string
	}{
		{&s.LongLine, "[[longline bytes=1500000]]"}, {&s.Error, "[[error 400]]"}, {&s.Hang, "[[hang]]"},
		{&s.Crash, "[[crash code=3]]"}, {&s.Silent, "[[silent]]"}, {&s.IgnoreTerm, "[[ignore-term]]"},
		{&s.Recall, "[[history]]"},
	} {
		if *f.field == "" {
			*f.field = f.part
		}
	}
	return s
}

// Case names one case of the suite.
type Case string

// Values of type Case. Each is one test that the suite runs with an agent.
const (
	PlainText      Case = "plain text"
	Thinking       Case = "thinking is no answer"
	ToolUse        Case = "tool"
	FailingTool    Case = "failing tool"
	LongLine       Case = "long line"
	ModelError     Case = "error of the model"
	SecondTurn     Case = "second turn in the same session"
	ResumeSession  Case = "resume in a new session"
	CrashInText    Case = "crash in mid text"
	CrashInTool    Case = "crash with an open tool"
	SilentExit     Case = "silent exit 0"
	AbortText      Case = "abort in mid text"
	AbortTool      Case = "abort ends every process of a tool"
	AbortDeaf      Case = "abort of an agent that ignores SIGTERM"
	AbortBefore    Case = "abort before the turn"
	AbortAway      Case = "abort where the agent cannot be reached"
	ReplaceText    Case = "the next message replaces text"
	ReplaceTool    Case = "the next message replaces a tool"
	Deadline       Case = "deadline keeps the text"
	CloseUnused    Case = "close without a turn"
	CloseWithTools Case = "close ends what a tool left behind"
	TwoSessions    Case = "two sessions, of which one ends"

	AdoptText       Case = "adopt in mid text"
	AdoptTool       Case = "adopt with an open tool"
	AdoptEnded      Case = "adopt a turn that ended meanwhile"
	AdoptUnsent     Case = "adopt a turn whose prompt never arrived"
	DetachThenAbort Case = "abort of an adopted turn ends every process of it"
)
