package acp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// usersAgent returns a provider over a real agent that users configure, with a simulated model, and its working directory.
func usersAgent(t *testing.T, name string) (*Provider, string) {
	t.Helper()
	c := realagent.OfProtocol()[name](t, realagent.Model(t, realagent.Key).URL())
	return New(Options{
		ProviderOptions: cli.ProviderOptions{Path: c.Path, Launcher: clitest.Host(t), Env: c.Environ, AllowEnv: c.Names()},
		Agent:           cli.Agent(name), Args: c.ACPArgs, StartLimit: 3 * time.Minute,
	}), c.Work
}

// One turn of each real agent: it runs a command and answers.
func TestRealAgentsAnswer(t *testing.T) {
	for name := range realagent.OfProtocol() {
		t.Run(name, func(t *testing.T) {
			p, dir := usersAgent(t, name)
			req := cli.Request{Dir: dir, Turn: "1", Prompt: `[[start]] [[tool cmd="echo of the tool"]] [[text "It is done."]]`, Permission: cli.Bypass}
			r, events := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
			if r.Err != nil || !strings.HasSuffix(r.Text, "It is done.") {
				t.Errorf("it answers %q, %+v", r.Text, r.Err)
			}
			for what, seen := range map[string]func(cli.Event) bool{
				"command": func(ev cli.Event) bool {
					tool, ok := ev.(cli.ToolStarted)
					return ok && strings.Contains(tool.Title, "echo of the tool")
				},
				"output": func(ev cli.Event) bool {
					tool, ok := ev.(cli.ToolEnded)
					return ok && !tool.Failed() && strings.Contains(tool.Output, "of the tool")
				},
			} {
				if !slices.ContainsFunc(events, seen) {
					t.Errorf("no event has the %s: %+v", what, events)
				}
			}
		})
	}
}

// These are the cases of the suite for real agents. The other cases are impossible with them, or cost seconds of CPU time each.
func TestRealConformance(t *testing.T) {
	realagent.LongOnly(t)
	const (
		fault  = "the real agent has no such fault on demand"
		asSaid = "the same lines as the scripted agent's, and seconds of processor"
	)
	for name := range realagent.OfProtocol() {
		cannot := clitest.Cannot{}
		cannot.Leave(fault, clitest.CrashInText, clitest.SilentExit, clitest.LongLine, clitest.AbortDeaf)
		cannot.Leave(asSaid, clitest.AbortBefore, clitest.AbortAway, clitest.CloseUnused, clitest.Deadline, clitest.AdoptUnsent)
		if strings.HasSuffix(name, "-acp") {
			cannot.Leave("the parent of its shells is the agent, whose end the adapter survives", clitest.CrashInTool)
		}
		if name == "codex-acp" {
			cannot.Leave("it shows its model's error as its answer", clitest.ModelError)
		}
		t.Run(name, func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Real: true, Mode: cli.Live, Over: over, Cannot: cannot, Patience: time.Minute,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir := usersAgent(t, name)
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
			})
		})
	}
}
