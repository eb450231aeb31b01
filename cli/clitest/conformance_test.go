package clitest

import (
	"os"
	"strings"
	"testing"

	"ductor/cli"
)

func TestMain(m *testing.M) {
	if home := os.Getenv(fakeVar); home != "" {
		os.Exit(runFake(home))
	}
	_ = os.Unsetenv(ProgramVar) // here supervisors are watched for races too
	Main(m)
}

// The suite is held up against a provider that keeps the contract.
func TestConformance(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			Conformance(t, Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					return fake{launcher: Host(t), home: t.TempDir()}, cli.Request{Dir: t.TempDir()}
				},
				Over: func(p cli.Provider, l cli.Launcher) cli.Provider {
					f := p.(fake)
					f.launcher = l
					return f
				},
				Script: Script{ErrorKind: cli.Refused},
				Cannot: Cannot{ReplaceTool: "it leaves its tools running when interrupted, so that an abort has something to end"},
			})
		})
	}
}

// Each way to break the contract is seen.
func TestViolations(t *testing.T) {
	session := cli.SessionStarted{AgentSessionID: "s", Model: "m"}
	result := cli.Result{Text: "ab", AgentSessionID: "s"}
	good := []cli.Event{session, cli.TextDelta{Text: "a"}, cli.ToolStarted{ID: "1"}, cli.ToolEnded{ID: "1"}, cli.TextDelta{Text: "b"}, result}
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
		{"something after the result", append(good[:len(good):len(good)], cli.Status{}), "Status comes after the Result"},
		{"session late", []cli.Event{cli.TextDelta{Text: "ab"}, session, result}, "not the first"},
		{"no session", []cli.Event{cli.TextDelta{Text: "ab"}, cli.Result{Text: "ab"}}, "named no session"},
		{"another session", []cli.Event{session, cli.Result{AgentSessionID: "t"}}, `of session "t"`},
		{"text that was never shown", []cli.Event{session, cli.TextDelta{Text: "a"}, result}, "the deltas make"},
		{"empty delta", []cli.Event{session, cli.TextDelta{}, cli.Result{AgentSessionID: "s"}}, "is empty"},
		{"too much retracted", []cli.Event{session, cli.TextDelta{Text: "a"}, cli.TextRetracted{Bytes: 2}, cli.Result{AgentSessionID: "s"}}, "retracted"},
		{"tool left open", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.Result{AgentSessionID: "s"}}, "not ended"},
		{"tool started twice", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.ToolStarted{ID: "1"}, cli.ToolEnded{ID: "1"}, cli.Result{AgentSessionID: "s"}}, "started twice"},
		{"tool ended twice", []cli.Event{session, cli.ToolStarted{ID: "1"}, cli.ToolEnded{ID: "1"}, cli.ToolEnded{ID: "1"}, cli.Result{AgentSessionID: "s"}}, "was not open"},
		{"aborted and failed", []cli.Event{session, cli.Result{AgentSessionID: "s", Aborted: true, Err: cli.Failf(cli.Crashed, "fake", "x")}}, "aborted and failed"},
		{"failure of nobody", []cli.Event{session, cli.Result{AgentSessionID: "s", Err: &cli.Failure{Kind: cli.Crashed}}}, "lacks kind or agent"},
		{"less than nothing", []cli.Event{session, cli.Result{AgentSessionID: "s", CostUSD: -1}}, "below zero"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Violations(tc.events)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("found %q, want one with %q", got, tc.want)
			}
		})
	}
}
