package claude

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// over returns the provider over another launcher, as after a restart of ductor.
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
			p, dir := scripted(t, nil)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over, Grace: withGrace,
		Script: clitest.Script{ErrorKind: cli.Refused},
	}, map[cli.Mode]clitest.Cannot{cli.Live: nil, cli.OneShot: nil})
}

// These are the cases of the suite for the real CLI. The others cost a second of CPU time each.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		elsewhere = "held by a test of its own"
		asLive    = "the same lines as live"
		ours      = "it is about the runner and this package, which the scripted agent shows as well"
	)
	live, oneShot := clitest.Cannot{}, clitest.Cannot{}
	for _, left := range []clitest.Cannot{live, oneShot} {
		left.Leave(fault, clitest.CrashInText, clitest.CrashInTool, clitest.SilentExit, clitest.AbortDeaf, clitest.LongLine)
		left.Leave(elsewhere, clitest.SecondTurn, clitest.ResumeSession, clitest.ModelError, clitest.ToolUse, clitest.FailingTool)
		left.Leave(ours, clitest.AbortBefore, clitest.AbortAway, clitest.Deadline, clitest.CloseUnused, clitest.TwoSessions,
			clitest.AdoptUnsent, clitest.AdoptEnded)
	}
	live.Leave(elsewhere, clitest.AdoptText, clitest.AdoptTool)
	oneShot.Leave(asLive, clitest.Thinking, clitest.AbortText, clitest.ReplaceText, clitest.AdoptText, clitest.CloseWithTools, clitest.DetachThenAbort)
	clitest.EachMode(t, clitest.Harness{
		Real: true,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, c, _ := real(t, nil)
			return p, cli.Request{Dir: c.Work, Permission: cli.Bypass}
		},
		Over: over, Script: clitest.Script{ErrorKind: cli.Refused}, Patience: time.Minute,
	}, map[cli.Mode]clitest.Cannot{cli.Live: live, cli.OneShot: oneShot})
}
