package clitest

import (
	"strconv"
	"testing"
	"time"

	"ductor/cli"
)

// Harness describes a provider in one mode for Conformance.
type Harness struct {
	Mode cli.Mode
	// New returns a provider whose agent has its own home, and a template for requests: its Dir, and settings with which the
	// agent runs shell commands without asking. The suite sets Prompt, Env and Resume.
	New func(t *testing.T) (cli.Provider, cli.Request)
	// Over returns a provider like New's, with the same agent and home, over another launcher. The cases of adoption need it,
	// since a restarted ductor has a new launcher over the same directory of runs.
	Over   func(p cli.Provider, l cli.Launcher) cli.Provider
	Script Script
	// Cannot lists cases that this agent cannot show. The suite logs the reasons.
	Cannot Cannot
	// Real is true for a real CLI. Each start of one takes seconds of CPU time, so only scripts/test --long plays more than
	// the cases of brief.
	Real bool
	// Plain is true for the suite's own agent, which plays all cases in all modes.
	Plain bool
	// Patience limits a turn or a close. Zero means 30 seconds. Real agents may need more.
	Patience time.Duration
}

// Cannot maps cases to the reason why the agent does not play them.
type Cannot map[Case]string

// Leave adds cases with the same reason.
func (c Cannot) Leave(reason string, cases ...Case) {
	for _, name := range cases {
		c[name] = reason
	}
}

// Script returns the parts of prompts that make an agent do something. The suite joins them with spaces. A field with
// the zero value gets the form of the script language of ductor's simulators.
type Script struct {
	Say      func(text string) string    // answers with this text
	Slowly   func(text string) string    // the same, in many pieces over half a second or more
	Think    func(text string) string    // reasons with this text
	Run      func(command string) string // runs a shell command with its shell tool
	LongLine string                      // prints a valid line of more than a megabyte
	Error    string                      // its model returns an error
	// ErrorKind is the expected failure of Error. If it is empty, any kind is accepted.
	ErrorKind  cli.FailureKind
	Hang       string // stays silent
	Crash      string // dies at once with an exit code
	Silent     string // exits with code 0 without ending the turn
	IgnoreTerm string // ignores SIGTERM from now on
	Recall     string // answers with the prompts of the session so far
}

// withDefaults sets empty fields to the script language of the simulators.
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

// The cases.
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
