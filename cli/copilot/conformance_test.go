package copilot

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// over returns p over another launcher.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}

// withGrace returns p with another grace.
func withGrace(p cli.Provider, grace time.Duration) cli.Provider {
	o := p.(*Provider).opts
	o.Grace = grace
	return New(o)
}

func TestConformance(t *testing.T) {
	clitest.EachMode(t, clitest.Harness{
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over, Grace: withGrace, Script: clitest.Script{ErrorKind: cli.Refused},
	}, map[cli.Mode]clitest.Cannot{cli.Live: {}, cli.OneShot: {}})
}

// These are the cases of the suite for the real CLI, at a second of CPU time each. The other cases are impossible with
// it, or covered by the scripted agent.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		shell     = "the parent of its shells is a helper, whose end it survives"
		asLive    = "the same processes and runner as live"
		elsewhere = "held by a test of its own"
		ours      = "it is about the runner and this package, which the scripted agent shows as well"
	)
	live, oneShot := clitest.Cannot{clitest.CrashInTool: shell}, clitest.Cannot{clitest.CrashInTool: shell}
	for _, left := range []clitest.Cannot{live, oneShot} {
		left.Leave(fault, clitest.CrashInText, clitest.SilentExit, clitest.LongLine, clitest.AbortDeaf)
		left.Leave(ours, clitest.AbortBefore, clitest.AbortAway, clitest.Deadline, clitest.CloseUnused, clitest.CloseWithTools, clitest.SecondTurn,
			clitest.AdoptText, clitest.AdoptEnded, clitest.AdoptUnsent)
	}
	live.Leave(elsewhere, clitest.ModelError)
	oneShot.Leave(asLive, clitest.FailingTool, clitest.TwoSessions, clitest.Thinking, clitest.AbortText, clitest.ReplaceText, clitest.DetachThenAbort)
	clitest.EachMode(t, clitest.Harness{
		Real: true,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir, _ := real(t)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over, Script: clitest.Script{ErrorKind: cli.Refused}, Patience: time.Minute,
	}, map[cli.Mode]clitest.Cannot{cli.Live: live, cli.OneShot: oneShot})
}
