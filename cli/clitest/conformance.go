package clitest

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ductor/cli"
	"ductor/internal/testprogram"
)

// Conformance tests that a provider fulfills the contract of package cli in one mode. It checks events, results,
// cancelling, closing, and sessions that continue. It looks for leaked goroutines, so the calling test must not be
// parallel.
func Conformance(t *testing.T, h Harness) {
	cases := suite()
	for name := range h.Cannot {
		if !slices.ContainsFunc(cases, func(c conformanceCase) bool { return c.name == name }) {
			t.Errorf("the harness says it cannot do %q, which is no case", name)
		}
	}
	for _, c := range cases {
		if !testprogram.Long() && h.skips(c.name) {
			continue
		}
		if reason, cannot := h.Cannot[c.name]; cannot {
			t.Logf("left out, %s: %s", c.name, reason)
			continue
		}
		t.Run(string(c.name), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() {
				if !t.Failed() { // after a failure, an additional report of leaks would only distract
					if err := testprogram.FindLeaks(before); err != nil {
						t.Error(err)
					}
				}
			})
			c.play(newStage(t, h))
		})
	}
}

// skips reports whether Conformance skips a case in a short test. A long test (scripts/test --long) skips none.
func (h Harness) skips(name Case) bool {
	if h.Real {
		return h.Mode != cli.Live || !slices.Contains(brief(), name)
	}
	return h.Mode == cli.OneShot && !h.Plain && slices.Contains(ofProcesses(), name)
}

// ofProcesses returns the cases that depend on the launcher and its runner, but not on the agent's output. In one-shot
// mode, these cases run only if Harness.Plain is set.
func ofProcesses() []Case {
	return []Case{LongLine, AbortDeaf, AbortBefore, AbortAway, CloseUnused, CloseWithTools, TwoSessions,
		DetachThenAbort}
}

// brief returns the cases in which a new version of a real agent most likely behaves differently.
func brief() []Case { return []Case{PlainText, ToolUse, AbortTool} }

// EachMode runs Conformance once for each key of cannot. It sets Harness.Mode to the key, and Harness.Cannot to the
// value of the key.
func EachMode(t *testing.T, h Harness, cannot map[cli.Mode]Cannot) {
	for _, mode := range slices.Sorted(maps.Keys(cannot)) {
		t.Run(string(mode), func(t *testing.T) {
			h.Mode, h.Cannot = mode, cannot[mode]
			Conformance(t, h)
		})
	}
}

type conformanceCase struct {
	name Case
	play func(*stage)
}

func suite() []conformanceCase {
	return append([]conformanceCase{
		{PlainText, playPlainText},
		{Thinking, playThinking},
		{ToolUse, playTool},
		{FailingTool, playFailingTool},
		{LongLine, playLongLine},
		{ModelError, playModelError},
		{SecondTurn, playSecondTurn},
		{ResumeSession, playResume},
		{CrashInText, playCrashInText},
		{CrashInTool, playCrashInTool},
		{SilentExit, playSilentExit},
		{AbortText, playAbortText},
		{AbortTool, playAbortTool},
		{AbortDeaf, playAbortDeaf},
		{AbortBefore, playAbortBefore},
		{AbortAway, playAbortAway},
		{ReplaceText, playReplaceText},
		{ReplaceTool, playReplaceTool},
		{Deadline, playDeadline},
		{CloseUnused, playCloseUnused},
		{CloseWithTools, playCloseWithTools},
		{TwoSessions, playTwoSessions},
	}, adoptionCases()...)
}

func (s *stage) answers(p played, text string) {
	s.t.Helper()
	if p.result.Err != nil || p.result.Aborted || p.result.Text != text {
		s.t.Errorf("answered %s (aborted %v, failure %+v), want %q", shown(p.result.Text), p.result.Aborted,
			p.result.Err, text)
	}
	if p.result.AgentSessionID == "" {
		s.t.Error("the Result names no session")
	}
}

func playPlainText(s *stage) {
	const text = "Hello, **wörld** — 日本語 🎉.\n\nSecond paragraph."
	req := s.ask(s.script.Say(text))
	s.answers(s.turn(s.open(req), req), text)
}

func playThinking(s *stage) {
	req := s.ask(s.script.Think("let me see"), s.script.Say("Done."))
	p := s.turn(s.open(req), req)
	s.answers(p, "Done.")
	if len(of[cli.ThinkingDelta](p.events)) == 0 {
		s.t.Error("no ThinkingDelta came")
	}
}

func playTool(s *stage) {
	req := s.ask(s.script.Run("echo tool-output"), s.script.Say("Done."))
	p := s.turn(s.open(req), req)
	started, ended := of[cli.ToolStarted](p.events), of[cli.ToolEnded](p.events)
	if len(started) != 1 || len(ended) != 1 {
		s.t.Fatalf("%d tools started, %d ended, want one", len(started), len(ended))
	}
	if started[0].Name == "" || !strings.Contains(started[0].Title, "echo tool-output") {
		s.t.Errorf("the tool is called %q, titled %q", started[0].Name, started[0].Title)
	}
	if !strings.Contains(ended[0].Output, "tool-output") || ended[0].Failed() || ended[0].Duration <= 0 {
		s.t.Errorf("the tool ended as %+v", ended[0])
	}
	if p.result.Err != nil || !strings.HasSuffix(p.result.Text, "Done.") {
		s.t.Errorf("answered %s, %+v", shown(p.result.Text), p.result.Err)
	}
}

func playFailingTool(s *stage) {
	req := s.ask(s.script.Run("echo no good; exit 3"), s.script.Say("Done."))
	p := s.turn(s.open(req), req)
	ended := of[cli.ToolEnded](p.events)
	if len(ended) != 1 || !strings.Contains(ended[0].Output+ended[0].Err, "no good") {
		s.t.Fatalf("tools ended as %+v", ended)
	}
	if e := ended[0]; e.Err == "" && (e.ExitCode == nil || *e.ExitCode != 3) {
		s.t.Errorf("the tool's failure is not seen: %+v", e)
	}
	if p.result.Err != nil {
		s.t.Errorf("a tool's failure is the turn's: %+v", p.result.Err)
	}
}

func playLongLine(s *stage) {
	req := s.ask(s.script.LongLine, s.script.Say("after it"))
	p := s.turn(s.open(req), req)
	if p.result.Err != nil || !strings.HasSuffix(p.result.Text, "after it") {
		s.t.Errorf("answered %s, %+v", shown(p.result.Text), p.result.Err)
	}
}

func playModelError(s *stage) {
	req := s.ask(s.script.Error)
	p := s.turn(s.open(req), req)
	switch err := p.result.Err; {
	case err == nil:
		s.t.Errorf("an error became the answer %s", shown(p.result.Text))
	case s.script.ErrorKind != "" && err.Kind != s.script.ErrorKind:
		s.t.Errorf("the failure is %+v, want kind %q", *err, s.script.ErrorKind)
	}
}

func playSecondTurn(s *stage) {
	first := s.ask("about the lighthouse", s.script.Say("One."))
	session := s.open(first)
	one := s.turn(session, first)
	s.answers(one, "One.")
	second := s.ask(s.script.Recall)
	second.Resume = one.result.AgentSessionID
	if !session.Fits(second) {
		s.t.Fatal("the session does not fit its own next turn")
	}
	two := s.turn(session, second)
	if !strings.Contains(two.result.Text, "lighthouse") || two.result.AgentSessionID != one.result.AgentSessionID {
		s.t.Errorf("answered %s in session %q after %q, %+v", shown(two.result.Text), two.result.AgentSessionID,
			one.result.AgentSessionID, two.result.Err)
	}
}

func playResume(s *stage) {
	first := s.ask("about the lighthouse", s.script.Say("One."))
	session := s.open(first)
	one := s.turn(session, first)
	s.answers(one, "One.")
	s.close(session)
	second := s.ask(s.script.Recall)
	second.Resume = one.result.AgentSessionID
	two := s.turn(s.open(second), second)
	if !strings.Contains(two.result.Text, "lighthouse") || two.result.Err != nil {
		s.t.Errorf("answered %s, %+v", shown(two.result.Text), two.result.Err)
	}
}

func (s *stage) failed(p played, kinds ...cli.FailureKind) {
	s.t.Helper()
	if p.result.Err == nil || p.result.Aborted || !slices.Contains(kinds, p.result.Err.Kind) {
		s.t.Errorf("ended as %+v with failure %+v, want %q", p.result, p.result.Err, kinds)
	}
}

func playCrashInText(s *stage) {
	req := s.ask(s.script.Say("half of it"), s.script.Crash)
	p := s.turn(s.open(req), req)
	s.failed(p, cli.Crashed)
	if p.result.Text != "half of it" {
		s.t.Errorf("kept %s", shown(p.result.Text))
	}
}

func playCrashInTool(s *stage) {
	req := s.ask(s.script.Run("kill -9 $PPID; sleep 60"))
	p := s.turn(s.open(req), req)
	s.failed(p, cli.Crashed)
	if ended := of[cli.ToolEnded](p.events); len(ended) != 1 || ended[0].Err == "" {
		s.t.Errorf("tools ended as %+v, want one with an error", ended)
	}
}

func playSilentExit(s *stage) {
	req := s.ask(s.script.Silent)
	s.failed(s.turn(s.open(req), req), cli.Crashed, cli.BadOutput)
}

func playAbortText(s *stage) {
	req := s.ask(s.script.Say("half of it"), s.script.Hang)
	session := s.open(req)
	p := s.begin(session, req)
	p.awaitText("half of it")
	s.aborted(session, p, "half of it")
}

// aborted aborts a turn and closes the session. It checks that the turn's Result contains text.
func (s *stage) aborted(session cli.Session, p *playing, text string) {
	s.t.Helper()
	began := time.Now()
	p.cancel(cli.ErrAborted)
	over := p.end()
	silent := time.Since(began)
	s.close(session)
	s.t.Logf("aborted: Result after %s, all dead after %s", silent.Round(time.Millisecond/10),
		time.Since(began).Round(time.Millisecond/10))
	if !over.result.Aborted || over.result.Text != text {
		s.t.Errorf("ended as %+v, failure %+v, want aborted with %q", over.result, over.result.Err, text)
	}
}

// playAbortTool aborts a turn while a tool is running. The tool starts a background process in a session of its own
// (setsid).
func playAbortTool(s *stage) {
	file := filepath.Join(s.t.TempDir(), "pid")
	req := s.ask(s.script.Run("setsid sh -c 'echo $$ >" + file + "; exec sleep 300' & sleep 300"))
	session := s.open(req)
	p := s.begin(session, req)
	pid, err := strconv.Atoi(s.awaitFile(file))
	if err != nil || !Alive(pid) {
		s.t.Fatalf("the grandchild %d is not there, %v", pid, err)
	}
	s.aborted(session, p, "")
	if asleep(pid) {
		s.t.Errorf("the grandchild %d outlived the abort", pid)
	}
}

func playAbortDeaf(s *stage) {
	s.setGrace(shortGrace)
	file := filepath.Join(s.t.TempDir(), "deaf")
	req := s.ask(s.script.IgnoreTerm, s.script.Run("echo deaf >"+file), s.script.Hang)
	session := s.open(req)
	p := s.begin(session, req)
	s.awaitFile(file)
	s.aborted(session, p, "")
}

func playAbortBefore(s *stage) {
	req := s.ask(s.script.Say("never"))
	session := s.open(req)
	ctx, cancel := context.WithCancelCause(s.t.Context())
	cancel(cli.ErrAborted)
	var events []cli.Event
	session.Turn(ctx, req, func(ev cli.Event) { events = append(events, ev) })
	for _, wrong := range Violations(events) {
		s.t.Errorf("contract: %s", wrong)
	}
	if r, ok := events[len(events)-1].(cli.Result); !ok || !r.Aborted {
		s.t.Errorf("ended as %+v", events[len(events)-1])
	}
}

func playDeadline(s *stage) {
	req := s.ask(s.script.Say("half of it"), s.script.Hang)
	p := s.begin(s.open(req), req)
	p.awaitText("half of it")
	p.cancel(context.DeadlineExceeded)
	over := p.end()
	s.failed(over, cli.TimedOut)
	if over.result.Text != "half of it" {
		s.t.Errorf("kept %s", shown(over.result.Text))
	}
}

func playCloseUnused(s *stage) {
	session := s.open(s.ask(s.script.Say("never")))
	s.close(session)
	s.close(session)
}

// playCloseWithTools checks that Close ends a background process that a tool has started, such as a development server.
func playCloseWithTools(s *stage) {
	file := filepath.Join(s.t.TempDir(), "pid")
	server := "setsid sh -c 'echo $$ >" + file + "; exec sleep 300' >/dev/null 2>&1 & "
	req := s.ask(s.script.Run(server+"until [ -s "+file+" ]; do sleep 0.01; done"), s.script.Say("Done."))
	session := s.open(req)
	p := s.begin(session, req)
	pid, err := strconv.Atoi(s.awaitFile(file))
	if err != nil {
		s.t.Fatal(err)
	}
	if over := p.end(); over.result.Err != nil {
		s.t.Errorf("failure %+v", over.result.Err)
	}
	s.close(session)
	if asleep(pid) {
		s.t.Errorf("process %d outlived the session", pid)
	}
}

func of[T cli.Event](events []cli.Event) (some []T) {
	for _, ev := range events {
		if ev, ok := ev.(T); ok {
			some = append(some, ev)
		}
	}
	return some
}

// playTwoSessions checks that closing a session does not affect another one. It also checks that two sessions share a
// process if the provider has announced this (see cli.Sharer), and not otherwise. The pool in cli/service relies on
// that.
func playTwoSessions(s *stage) {
	one, two := s.ask(s.script.Say("never")), s.ask(s.script.Say("Two."))
	one.Conversation, two.Conversation = "one", "two"
	shares := func() int {
		if sharer, ok := s.provider.(cli.Sharer); ok && s.h.Mode == cli.Live {
			return sharer.Shares(two)
		}
		return 0
	}
	if pid := shares(); pid != 0 {
		s.t.Errorf("a session would share process %d, and none is there", pid)
	}
	first := s.open(one)
	announced := shares()
	second := s.open(two)
	if a, b := first.Info().PID, second.Info().PID; a != 0 && a == b && announced != a {
		s.t.Errorf("both sessions are in process %d, announced was %d", a, announced)
	} else if announced != 0 && announced != b {
		s.t.Errorf("the second session is in process %d, announced was %d", b, announced)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), s.h.Patience)
	defer cancel()
	if err := first.Close(ctx); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.answers(s.turn(second, two), "Two.")
}
