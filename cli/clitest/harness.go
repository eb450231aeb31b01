package clitest

import (
	"strconv"
	"testing"
	"time"

	"ductor/cli"
)

// Harness is a provider in one mode, as Conformance drives it.
type Harness struct {
	Mode cli.Mode
	// New makes a provider whose agent has a home of its own, and the request every turn is made of: its
	// Dir, and whatever lets the agent run shell commands unasked. Prompt, Env and Resume are set by the suite.
	New func(t *testing.T) (cli.Provider, cli.Request)
	// Over is a provider as New made it, with the same agent and home, over another launcher. The cases of
	// adoption use it: a ductor that was started anew has another launcher over the same directory of runs.
	Over   func(p cli.Provider, l cli.Launcher) cli.Provider
	Script Script
	// Cannot lists cases that this agent cannot be made to show, each with the reason, which is logged.
	Cannot Cannot
	// Real says that the agent is a real CLI, whose every start takes seconds of processor: it plays the cases of brief
	// alone, and all of them with scripts/test --long.
	Real bool
	// Plain says that the agent is the suite's own: it plays all cases in all modes.
	Plain bool
	// Patience is how long a turn, or a close, may take before the suite gives up; 30 s if zero. Real
	// agents may need more.
	Patience time.Duration
}

// Cannot says of cases why an agent is not held to them.
type Cannot map[Case]string

// Leave adds cases that are left out for the same reason.
func (c Cannot) Leave(reason string, cases ...Case) {
	for _, name := range cases {
		c[name] = reason
	}
}

// Script is how an agent is made to do things: each field gives a part of a prompt, and parts are joined
// by a space. The zero value of a field is the part of the script language of ductor's simulators.
type Script struct {
	Say      func(text string) string    // answers with this text
	Slowly   func(text string) string    // the same, in many pieces over half a second or more
	Think    func(text string) string    // reasons so
	Run      func(command string) string // runs a shell command with its shell tool
	LongLine string                      // prints a valid line of more than a megabyte
	Error    string                      // meets an error of its model
	// ErrorKind is what Error becomes; any kind if empty.
	ErrorKind  cli.FailureKind
	Hang       string // says nothing for ever
	Crash      string // dies at once with an exit code
	Silent     string // exits with code 0 and says nothing of the turn's end
	IgnoreTerm string // ignores SIGTERM from now on
	Recall     string // answers with the prompts of the session so far
}

// withDefaults fills in the script language of the simulators.
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
		{&s.Crash, "[[crash code=3]]"}, {&s.Silent, "[[silent]]"}, {&s.IgnoreTerm, "[[ignore-term]]"}, {&s.Recall, "[[history]]"},
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
