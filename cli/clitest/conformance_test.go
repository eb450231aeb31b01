package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	sim "ductor/internal/sim/agent"
)

func TestMain(m *testing.M) {
	sim.RunIfChild()
	_ = os.Unsetenv(ProgramVar) // so that the race detector also covers runners
	Main(m)
}

// scriptedPlain returns the provider over the scripted agent.
func scriptedPlain(t *testing.T) *plainProvider {
	return newPlain(Scripted(t, func(p sim.Programs) string { return p.Plain }))
}

// over returns the provider over another launcher.
func (p *plainProvider) over(l cli.Launcher) *plainProvider {
	o := p.opts
	o.Launcher = l
	return newPlain(o)
}

// TestConformance tests that a minimal dialect passes the suite.
func TestConformance(t *testing.T) {
	EachMode(t, Harness{
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			return scriptedPlain(t), cli.Request{Dir: t.TempDir(), Permission: cli.Bypass}
		},
		Over:   func(p cli.Provider, l cli.Launcher) cli.Provider { return p.(*plainProvider).over(l) },
		Script: Script{ErrorKind: cli.Refused}, Plain: true,
	}, map[cli.Mode]Cannot{cli.Live: {}, cli.OneShot: {}})
}

// TestAnApprovalOutlivesDuctor tests that each process of ductor reports an open request once, and that the answer
// reaches the agent.
func TestAnApprovalOutlivesDuctor(t *testing.T) {
	s := newStage(t, Harness{
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			return scriptedPlain(t), cli.Request{Dir: t.TempDir(), Attended: true}
		},
		Over: func(p cli.Provider, l cli.Launcher) cli.Provider { return p.(*plainProvider).over(l) },
	})
	req := s.ask(s.script.Run("echo made >made.txt"))
	var id cli.ApprovalID
	asked := func(ev cli.Event) bool {
		a, ok := ev.(cli.ApprovalAsked)
		if ok {
			id = a.ID
		}
		return ok
	}
	first := s.ductor()
	session := first.open(req)
	p := s.begin(session, req)
	p.awaitEvent(asked)
	first.leave(session, p)
	session = s.ductor().adopt(req)
	p = s.begin(session, req)
	p.awaitEvent(asked)
	if err := session.(cli.Decider).Decide(t.Context(), id, cli.Decision{Allow: true}); err != nil {
		t.Fatal(err)
	}
	over := p.end()
	s.caughtUp(over)
	if raw, err := os.ReadFile(filepath.Join(req.Dir, "made.txt")); string(raw) != "made\n" || over.result.Err != nil {
		t.Errorf("the tool wrote %q, %v; the turn ended as %+v", raw, err, over.result)
	}
	if n := len(of[cli.ApprovalAsked](over.events)); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestADialectIsSmall limits the size of a minimal live dialect.
func TestADialectIsSmall(t *testing.T) {
	const most = 400
	raw, err := os.ReadFile("plain_test.go")
	if n := strings.Count(string(raw), "\n"); err != nil || n > most {
		t.Errorf("the dialect has %d lines, want at most %d, %v", n, most, err)
	}
}

// TestViolations tests that every violation of the contract is found.
func TestViolations(t *testing.T) {
	session := cli.SessionStarted{AgentSessionID: "s", Model: "m"}
	result := cli.Result{Text: "ab", AgentSessionID: "s"}
	good := []cli.Event{session, cli.TextDelta{Text: "a"}, cli.ToolStarted{ID: "1"}, cli.ToolEnded{ID: "1"},
		cli.TextDelta{Text: "b"}, result}
	for _, tc := range []struct {
		name   string
		events []cli.Event
		want   string // part of the only violation; empty for none
	}{
		{"good", good, ""},
		{"failed before the session was named", []cli.Event{cli.Result{Err: cli.Failf(cli.Crashed, "fake", "x")}}, ""},
		{"text taken back", []cli.Event{session, cli.TextDelta{Text: "abc"}, cli.TextRetracted{Bytes: 1}, result}, ""},
		{"nothing", nil, "there is no Result"},
		{"no result", good[:5], "there is no Result"},
		{"something after the result", append(good[:len(good):len(good)], cli.Status{}),
			"Status comes after the Result"},
		{"session late", []cli.Event{cli.TextDelta{Text: "ab"}, session, result}, "not the first"},
		{"no session", []cli.Event{cli.TextDelta{Text: "ab"}, cli.Result{Text: "ab"}}, "named no session"},
		{"another session", []cli.Event{session, cli.Result{AgentSessionID: "t"}}, `of session "t"`},
		{"text that was never shown", []cli.Event{session, cli.TextDelta{Text: "a"}, result}, "the deltas make"},
		{"empty delta", []cli.Event{session, cli.TextDelta{}, cli.Result{AgentSessionID: "s"}}, "is empty"},
		{"too much retracted", []cli.Event{session, cli.TextDelta{Text: "a"}, cli.TextRetracted{Bytes: 2},
			cli.Result{AgentSessionID: "s"}}, "retracted"},
		{"tool left open", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.Result{AgentSessionID: "s"}},
			"not ended"},
		{"tool started twice", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.ToolStarted{ID: "1"},
			cli.ToolEnded{ID: "1"}, cli.Result{AgentSessionID: "s"}}, "started twice"},
		{"tool ended twice", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.ToolEnded{ID: "1"},
			cli.ToolEnded{ID: "1"}, cli.Result{AgentSessionID: "s"}}, "was not open"},
		{"tool changed late", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.ToolEnded{ID: "1"},
			cli.ToolChanged{ToolStarted: cli.ToolStarted{ID: "1"}}, cli.Result{AgentSessionID: "s"}},
			"is changed and was not open"},
		{"aborted and failed", []cli.Event{session,
			cli.Result{AgentSessionID: "s", Aborted: true, Err: cli.Failf(cli.Crashed, "fake", "x")}},
			"aborted and failed"},
		{"failure of nobody", []cli.Event{session,
			cli.Result{AgentSessionID: "s", Err: &cli.Failure{Kind: cli.Crashed}}}, "lacks kind or agent"},
		{"less than nothing", []cli.Event{session, cli.Result{AgentSessionID: "s",
			Consumed: cli.Consumption{CostUSD: -1}}}, "below zero"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Violations(tc.events)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("found %q, want one with %q", got, tc.want)
			}
		})
	}
}
