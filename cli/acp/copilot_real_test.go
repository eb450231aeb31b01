package acp

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

// realCopilot returns a configured agent: the installed GitHub Copilot CLI with a simulated model. Copilot and Gemini
// are the two real agents for this package's tests; their implementations are independent.
func realCopilot(t *testing.T, change func(*Options)) (*Provider, string, *modelapi.Server) {
	t.Helper()
	api := realagent.Model(t, realagent.Key)
	c := realagent.Copilot(t, api.URL())
	o := Options{
		ProviderOptions: cli.ProviderOptions{
			Path: c.Path, Launcher: clitest.Host(t), Env: c.Environ, AllowEnv: []string{"COPILOT_*"},
		},
		Agent: "copilot-acp", Args: []string{"--acp", "--no-auto-update"},
	}
	if change != nil {
		change(&o)
	}
	return New(o), c.Work, api
}

func TestRealCopilotConformance(t *testing.T) {
	realagent.LongOnly(t)
	const (
		fault  = "the real CLI has no such fault on demand"
		asSaid = "the same lines as the scripted agent's, and seconds of processor"
	)
	clitest.Conformance(t, clitest.Harness{
		Real: true,
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir, _ := realCopilot(t, nil)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over:   over,
		Script: clitest.Script{ErrorKind: cli.Refused},
		Cannot: clitest.Cannot{
			clitest.CrashInText: fault, clitest.SilentExit: fault, clitest.LongLine: fault, clitest.AbortDeaf: fault,
			clitest.CrashInTool: "the parent of its shells is a helper, whose end it survives",
			clitest.AbortBefore: asSaid, clitest.AbortAway: asSaid, clitest.CloseUnused: asSaid, clitest.Deadline: asSaid, clitest.AbortText: asSaid, clitest.ReplaceText: asSaid,
			clitest.AdoptText: asSaid, clitest.AdoptEnded: asSaid, clitest.AdoptUnsent: asSaid, clitest.SecondTurn: asSaid,
			clitest.ReplaceTool: "its tool may run on, so the session goes on in another process",
		},
		Patience: time.Minute,
	})
}
