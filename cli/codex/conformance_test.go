package codex

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// over returns the provider of a restarted ductor.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	opts := p.(*Provider).opts
	opts.Launcher = l
	return New(opts)
}

// withGrace returns p with another grace.
func withGrace(p cli.Provider, grace time.Duration) cli.Provider {
	o := p.(*Provider).opts
	o.Grace = grace
	return New(o)
}

func TestConformance(t *testing.T) {
	const whole = "codex exec prints a message only once it is whole"
	oneShot := clitest.Cannot{}
	oneShot.Leave(whole, clitest.CrashInText, clitest.AbortText, clitest.ReplaceText, clitest.Deadline, clitest.AdoptText)
	clitest.EachMode(t, clitest.Harness{
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over, Grace: withGrace, Script: clitest.Script{ErrorKind: cli.Refused},
	}, map[cli.Mode]clitest.Cannot{cli.Live: {}, cli.OneShot: oneShot})
}

// These are the cases of the suite for the real CLI, at half a second each. The other cases are impossible with it, or
// covered by the scripted agent or a test of their own.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		whole     = "codex exec prints a message only once it is whole"
		elsewhere = "held by a test of its own"
		asLive    = "the same processes and runner as live"
		ours      = "it is about the runner and this package, which the scripted agent shows as well"
	)
	live, oneShot := clitest.Cannot{}, clitest.Cannot{}
	for _, left := range []clitest.Cannot{live, oneShot} {
		left.Leave(fault, clitest.CrashInText, clitest.CrashInTool, clitest.SilentExit, clitest.LongLine, clitest.AbortDeaf)
		left.Leave(elsewhere, clitest.ModelError, clitest.SecondTurn, clitest.FailingTool, clitest.TwoSessions)
		left.Leave(ours, clitest.AbortBefore, clitest.AbortAway, clitest.CloseUnused, clitest.AdoptEnded, clitest.AdoptUnsent)
	}
	live.Leave(ours, clitest.Deadline)
	oneShot.Leave(whole, clitest.AbortText, clitest.ReplaceText, clitest.Deadline, clitest.AdoptText)
	oneShot.Leave(elsewhere, clitest.ResumeSession, clitest.Thinking)
	oneShot.Leave(asLive, clitest.DetachThenAbort, clitest.CloseWithTools)
	clitest.EachMode(t, clitest.Harness{
		Real: true,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir, _ := real(t)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over, Script: clitest.Script{ErrorKind: cli.Refused}, Patience: time.Minute,
	}, map[cli.Mode]clitest.Cannot{cli.Live: live, cli.OneShot: oneShot})
}
