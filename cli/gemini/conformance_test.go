package gemini

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

const (
	noIdle     = "an idle process serves conversations nobody remembers; it is ended at the next start"
	noCode     = "it does not say how a command ended that printed something"
	noThoughts = "its one-shot stream has no reasoning"
)

func cannot(mode cli.Mode) map[clitest.Case]string {
	if mode == cli.Live {
		return map[clitest.Case]string{clitest.AdoptIdle: noIdle, clitest.FailingTool: noCode}
	}
	return map[clitest.Case]string{clitest.Thinking: noThoughts, clitest.FailingTool: noCode}
}

func TestConformance(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir := scripted(t, func(o *Options) { o.Grace = 500 * time.Millisecond })
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
				Over:   over,
				Script: clitest.Script{ErrorKind: cli.Refused},
				Cannot: cannot(mode),
			})
		})
	}
}

// What the real CLI shows of the suite; the rest it cannot be made to do, or costs seconds of processor a case.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		elsewhere = "held by a test of its own"
		asSaid    = "the same lines as the scripted agent's, and seconds of processor"
	)
	dear := []clitest.Case{clitest.AbortBefore, clitest.CloseUnused, clitest.Deadline, clitest.SecondTurn, clitest.AbortText,
		clitest.CloseWithTools, clitest.AdoptText, clitest.AdoptEnded, clitest.AdoptUnsent, clitest.DetachThenAbort}
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		left := cannot(mode)
		for _, c := range []clitest.Case{clitest.CrashInText, clitest.CrashInTool, clitest.SilentExit, clitest.AbortDeaf, clitest.LongLine} {
			left[c] = fault
		}
		for _, c := range dear {
			left[c] = asSaid
		}
		left[clitest.ResumeSession] = elsewhere
		if mode == cli.OneShot {
			left[clitest.TwoSessions] = asSaid
		}
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, c, _ := real(t, nil)
					return p, cli.Request{Dir: c.Work, Permission: cli.Bypass, Model: realModel}
				},
				Over:     over,
				Script:   clitest.Script{ErrorKind: cli.Refused},
				Cannot:   left,
				Patience: time.Minute,
			})
		})
	}
}
