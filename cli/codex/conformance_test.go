package codex

import (
	"maps"
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
	)
	faults := map[clitest.Case]string{
		clitest.CrashInText: fault, clitest.CrashInTool: fault, clitest.SilentExit: fault, clitest.LongLine: fault,
		clitest.AbortDeaf: fault, clitest.ModelError: elsewhere, clitest.SecondTurn: elsewhere, clitest.FailingTool: elsewhere,
	}
	oneShot := maps.Clone(faults)
	for _, c := range []clitest.Case{clitest.AbortText, clitest.Deadline, clitest.AdoptText} {
		oneShot[c] = whole
	}
	for _, c := range []clitest.Case{clitest.ResumeSession, clitest.Thinking} {
		oneShot[c] = elsewhere
	}
	for _, c := range []clitest.Case{clitest.AdoptEnded, clitest.DetachThenAbort} {
		oneShot[c] = asLive
	}
	for mode, cannot := range map[cli.Mode]map[clitest.Case]string{cli.Live: faults, cli.OneShot: oneShot} {
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
