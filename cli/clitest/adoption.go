package clitest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/host"
)

// In the adoption cases, ductor ends in the middle of a turn, and the next process of ductor adopts the turn.

func adoptionCases() []conformanceCase {
	return []conformanceCase{
		{AdoptText, playAdoptText},
		{AdoptTool, playAdoptTool},
		{AdoptEnded, playAdoptEnded},
		{AdoptUnsent, playAdoptUnsent},
		{DetachThenAbort, playDetachThenAbort},
	}
}

// ductor simulates one process of ductor. Its launcher uses a directory of runs that is the same for all simulated
// processes of a case.
type ductor struct {
	s        *stage
	host     *host.Launcher
	provider cli.Provider
}

// ductor starts the simulation of a process of ductor. Only one may exist at a time.
func (s *stage) ductor() *ductor {
	s.t.Helper()
	if s.h.Over == nil {
		s.t.Fatal("the harness does not say how its provider is put over another launcher (Harness.Over)")
	}
	if s.runs == "" {
		s.runs = s.t.TempDir()
	}
	host := OpenHost(s.t, host.Options{Dir: s.runs})
	return &ductor{s: s, host: host, provider: s.h.Over(s.provider, host)}
}

// wrapLauncher makes the provider use the launcher that wrap returns. It calls wrap with the launcher of d.
func (d *ductor) wrapLauncher(wrap func(cli.Launcher) cli.Launcher) *ductor {
	d.provider = d.s.h.Over(d.s.provider, wrap(d.host))
	return d
}

func (d *ductor) open(req cli.Request) cli.Session {
	d.s.t.Helper()
	ctx, cancel := context.WithTimeout(d.s.t.Context(), d.s.h.Patience)
	defer cancel()
	session, err := d.provider.Open(ctx, d.s.h.Mode, req)
	if err != nil {
		d.s.t.Fatalf("open: %v", err)
	}
	return session
}

// leave simulates the end of ductor. p is a running turn, or nil. leave detaches from the turn and returns the events
// that the turn has had so far.
func (d *ductor) leave(session cli.Session, p *playing) (told played) {
	d.s.t.Helper()
	if p != nil {
		p.cancel(cli.ErrDetached)
		told = p.end()
		if r := told.result; !r.Detached || r.Aborted || r.Err != nil {
			d.s.t.Errorf("a turn that was let go of ended as %+v, failure %+v", r, r.Err)
		}
	}
	session.Detach()
	session.Detach()
	if err := d.host.Close(); err != nil {
		d.s.t.Error(err)
	}
	return told
}

func (d *ductor) found() cli.LeftRun {
	d.s.t.Helper()
	left := Left(d.s.t, d.host, d.s.runs)
	if len(left) != 1 {
		d.s.t.Fatalf("%d runs are left, want one: %+v", len(left), left)
	}
	run := left[0]
	if run.Agent != d.provider.Agent() || run.Mode != d.s.h.Mode || run.Problem != "" {
		d.s.t.Errorf("what is left is of %q in mode %q, problem %q", run.Agent, run.Mode, run.Problem)
	}
	return run
}

// adopt returns a session that continues the turn of the previous process.
func (d *ductor) adopt(req cli.Request) cli.Session {
	d.s.t.Helper()
	run := d.found()
	ctx, cancel := context.WithTimeout(d.s.t.Context(), d.s.h.Patience)
	defer cancel()
	session, err := d.provider.Adopt(ctx, run, req)
	if err != nil {
		d.s.t.Fatalf("adopt: %v", err)
	}
	if info := session.Info(); info.Agent != d.provider.Agent() || info.Mode != d.s.h.Mode {
		d.s.t.Errorf("the session says it is %q in mode %q", info.Agent, info.Mode)
	}
	d.s.t.Cleanup(func() { d.s.close(session) })
	return session
}

// caughtUp checks that an adopted turn emits CaughtUp exactly once.
func (s *stage) caughtUp(p played) {
	s.t.Helper()
	if n := len(of[cli.CaughtUp](p.events)); n != 1 {
		s.t.Errorf("CaughtUp came %d times, want once", n)
	}
}

const storm = "The lighthouse keeper counted the waves of that night, one after the other, until there was no number left " +
	"that he knew, and then he began again with the first, which nobody else had seen: «die Wellen» — 波 — all of them, to the end."

func playAdoptText(s *stage) {
	first := s.ductor()
	req := s.ask("about the windmill", s.script.Slowly(storm))
	session := first.open(req)
	p := s.begin(session, req)
	p.awaitText("keeper")
	early := first.leave(session, p)

	second := s.ductor()
	session = second.adopt(req)
	late := s.turn(session, req)
	s.answers(late, storm)
	s.caughtUp(late)
	if !strings.HasPrefix(late.result.Text, early.result.Text) {
		s.t.Errorf("first it said %s, then %s", shown(early.result.Text), shown(late.result.Text))
	}
	s.askedOnce(second, session, late.result.AgentSessionID)
}

// askedOnce checks that the agent's session contains the prompt with the word "windmill" exactly once.
func (s *stage) askedOnce(d *ductor, session cli.Session, id cli.AgentSessionID) {
	s.t.Helper()
	req := s.ask(s.script.Recall)
	req.Resume = id
	if s.h.Mode == cli.OneShot || !session.Fits(req) {
		s.close(session)
		session = d.open(req)
		s.t.Cleanup(func() { s.close(session) })
	}
	p := s.turn(session, req)
	if n := strings.Count(p.result.Text, "windmill"); n != 1 || p.result.Err != nil {
		s.t.Errorf("the agent was asked %d times: %s, %+v", n, shown(p.result.Text), p.result.Err)
	}
}

// gate provides a shell command that waits until pass is called. It also counts how often the command was started.
type gate struct{ count, open string }

func (s *stage) gate() gate {
	dir := s.t.TempDir()
	return gate{filepath.Join(dir, "count"), filepath.Join(dir, "open")}
}

func (g gate) command() string {
	return "echo run >>" + g.count + "; until [ -e " + g.open + " ]; do sleep 0.01; done; echo tool-output"
}

func (g gate) pass(s *stage) {
	s.t.Helper()
	if err := os.WriteFile(g.open, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (g gate) ran(s *stage, want int) {
	s.t.Helper()
	raw, err := os.ReadFile(g.count)
	if n := strings.Count(string(raw), "run\n"); n != want {
		s.t.Errorf("the tool was run %d times, want %d, %v", n, want, err)
	}
}

func playAdoptTool(s *stage) {
	first, g := s.ductor(), s.gate()
	req := s.ask(s.script.Run(g.command()), s.script.Say("Done."))
	session := first.open(req)
	p := s.begin(session, req)
	s.awaitFile(g.count)
	p.awaitEvent(func(ev cli.Event) bool { _, ok := ev.(cli.ToolStarted); return ok })
	first.leave(session, p)

	time.Sleep(pastTool)
	second := s.ductor()
	resumed := time.Now()
	again := s.begin(second.adopt(req), req)
	again.awaitEvent(func(ev cli.Event) bool { _, ok := ev.(cli.CaughtUp); return ok })
	g.pass(s)
	over := again.end()
	s.caughtUp(over)
	started, ended := of[cli.ToolStarted](over.events), of[cli.ToolEnded](over.events)
	if len(started) != 1 || len(ended) != 1 || !strings.Contains(ended[0].Output, "tool-output") || ended[0].Failed() {
		s.t.Fatalf("tools started as %+v, ended as %+v", started, ended)
	}
	if at := started[0].At; at.IsZero() || resumed.Sub(at) < pastTool/2 {
		s.t.Errorf("the tool is said to have begun at %s, the turn was gone on with at %s", at, resumed)
	}
	if ended[0].Duration < pastTool/2 {
		s.t.Errorf("the tool is said to have taken %s", ended[0].Duration)
	}
	if over.result.Err != nil || !strings.HasSuffix(over.result.Text, "Done.") {
		s.t.Errorf("answered %s, %+v", shown(over.result.Text), over.result.Err)
	}
	g.ran(s, 1)
}

// pastTool is how long a tool runs while no process of ductor exists.
const pastTool = 800 * time.Millisecond

func playAdoptEnded(s *stage) {
	first, g := s.ductor(), s.gate()
	req := s.ask(s.script.Run(g.command()), s.script.Say("Done."))
	session := first.open(req)
	p := s.begin(session, req)
	s.awaitFile(g.count)
	first.leave(session, p)
	g.pass(s)

	second := s.ductor()
	s.awaitQuiet(second)
	over := s.turn(second.adopt(req), req)
	if over.result.Err != nil || !strings.HasSuffix(over.result.Text, "Done.") {
		s.t.Errorf("answered %s, %+v", shown(over.result.Text), over.result.Err)
	}
	s.caughtUp(over)
	if ended := of[cli.ToolEnded](over.events); len(ended) != 1 || ended[0].Failed() {
		s.t.Errorf("tools ended as %+v", ended)
	}
	g.ran(s, 1)
}

// awaitQuiet waits until the program has ended, or has printed nothing for a while, so that the turn has probably
// ended. If this takes too long, awaitQuiet returns anyway; the test then passes, but tests less.
func (s *stage) awaitQuiet(d *ductor) {
	s.t.Helper()
	const still = 250 * time.Millisecond
	end, since := int64(-1), time.Now()
	for until := time.Now().Add(s.h.Patience / 2); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		run := d.found()
		if run.OutputEnd != end {
			end, since = run.OutputEnd, time.Now()
		}
		if !run.Alive || time.Since(since) > still {
			return
		}
	}
}

func playDetachThenAbort(s *stage) {
	first := s.ductor()
	file := filepath.Join(s.t.TempDir(), "pid")
	req := s.ask(s.script.Run("setsid sh -c 'setsid sh -c \"echo \\$\\$ >" + file +
		"; exec sleep 300\" & sleep 300' & sleep 300"))
	session := first.open(req)
	p := s.begin(session, req)
	pid, err := strconv.Atoi(s.awaitFile(file))
	if err != nil || !Alive(pid) {
		s.t.Fatalf("the grandchild %d is not there, %v", pid, err)
	}
	first.leave(session, p)
	if !Alive(pid) {
		s.t.Fatalf("the grandchild %d did not outlive the first ductor", pid)
	}

	second := s.ductor()
	session = second.adopt(req)
	again := s.begin(session, req)
	again.awaitEvent(func(ev cli.Event) bool { _, ok := ev.(cli.CaughtUp); return ok })
	s.aborted(session, again, "")
	if asleep(pid) {
		s.t.Errorf("the grandchild %d outlived the abort", pid)
	}
}
