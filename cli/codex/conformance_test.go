package codex

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// over is the provider of a ductor that was started anew.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	opts := p.(*Provider).opts
	opts.Launcher = l
	return New(opts)
}

func TestConformance(t *testing.T) {
	const whole = "codex exec prints a message only once it is whole"
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.OneShot,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t)
			p.opts.Grace = 500 * time.Millisecond
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over:   over,
		Script: clitest.Script{ErrorKind: cli.Refused},
		Cannot: map[clitest.Case]string{clitest.CrashInText: whole, clitest.AbortText: whole, clitest.Deadline: whole, clitest.AdoptText: whole},
	})
}

func TestLiveConformance(t *testing.T) {
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t)
			p.opts.Grace = 500 * time.Millisecond
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over:   over,
		Script: clitest.Script{ErrorKind: cli.Refused},
	})
}

// What the real CLI shows of the suite, at half a second a case: the rest it cannot be made to do, or the scripted
// one shows, or a test of its own.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		whole     = "codex exec prints a message only once it is whole"
		elsewhere = "held by a test of its own"
		asLive    = "the same processes and supervisor as live"
		ours      = "it is about the supervisor and this package, which the scripted agent shows as well"
	)
	live, oneShot := map[clitest.Case]string{}, map[clitest.Case]string{}
	leave := func(reason string, left map[clitest.Case]string, cases ...clitest.Case) {
		for _, c := range cases {
			left[c] = reason
		}
	}
	for _, left := range []map[clitest.Case]string{live, oneShot} {
		leave(fault, left, clitest.CrashInText, clitest.CrashInTool, clitest.SilentExit, clitest.LongLine, clitest.AbortDeaf)
		leave(elsewhere, left, clitest.ModelError, clitest.SecondTurn, clitest.FailingTool, clitest.TwoSessions)
		leave(ours, left, clitest.AbortBefore, clitest.CloseUnused, clitest.AdoptEnded, clitest.AdoptIdle, clitest.AdoptUnsent)
	}
	leave(ours, live, clitest.Deadline)
	leave(whole, oneShot, clitest.AbortText, clitest.Deadline, clitest.AdoptText)
	leave(elsewhere, oneShot, clitest.ResumeSession, clitest.Thinking)
	leave(asLive, oneShot, clitest.DetachThenAbort, clitest.CloseWithTools)
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
