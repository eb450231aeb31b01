package copilot

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// over is p over another launcher.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}

func TestConformance(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir := scripted(t)
					p.opts.Grace = 500 * time.Millisecond
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
				Over:   over,
				Script: clitest.Script{ErrorKind: cli.Refused},
			})
		})
	}
}

// What the real CLI shows of the suite, at a second of processor a case: the rest it cannot be made to do, or the
// scripted one shows.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		shell     = "the parent of its shells is a helper, whose end it survives"
		asLive    = "the same processes and supervisor as live"
		elsewhere = "held by a test of its own"
		ours      = "it is about the supervisor and this package, which the scripted agent shows as well"
	)
	live, oneShot := map[clitest.Case]string{clitest.CrashInTool: shell}, map[clitest.Case]string{clitest.CrashInTool: shell}
	leave := func(reason string, left map[clitest.Case]string, cases ...clitest.Case) {
		for _, c := range cases {
			left[c] = reason
		}
	}
	for _, left := range []map[clitest.Case]string{live, oneShot} {
		leave(fault, left, clitest.CrashInText, clitest.SilentExit, clitest.LongLine, clitest.AbortDeaf)
		leave(ours, left, clitest.AbortBefore, clitest.Deadline, clitest.CloseUnused, clitest.CloseWithTools, clitest.SecondTurn,
			clitest.AdoptText, clitest.AdoptEnded, clitest.AdoptUnsent, clitest.AdoptIdle)
	}
	leave(elsewhere, live, clitest.ModelError)
	leave(asLive, oneShot, clitest.FailingTool, clitest.TwoSessions, clitest.Thinking, clitest.AbortText, clitest.DetachThenAbort)
	for mode, cannot := range map[cli.Mode]map[clitest.Case]string{cli.Live: live, cli.OneShot: oneShot} {
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir, _ := real(t)
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
				Over:     over,
				Script:   clitest.Script{ErrorKind: cli.Refused},
				Cannot:   cannot,
				Patience: time.Minute,
			})
		})
	}
}
