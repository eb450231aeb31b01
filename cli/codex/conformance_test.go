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

// What the real CLI shows of the suite; the rest it cannot be made to do.
func TestRealConformance(t *testing.T) {
	const (
		fault = "the real CLI has no such fault on demand"
		whole = "codex exec prints a message only once it is whole"
	)
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.OneShot,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir, _ := real(t)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over:   over,
		Script: clitest.Script{ErrorKind: cli.Refused},
		Cannot: map[clitest.Case]string{
			clitest.CrashInText: fault, clitest.CrashInTool: fault, clitest.SilentExit: fault, clitest.LongLine: fault,
			clitest.AbortDeaf: fault, clitest.AbortText: whole, clitest.Deadline: whole, clitest.AdoptText: whole,
		},
		Patience: time.Minute,
	})
}

func TestRealLiveConformance(t *testing.T) {
	const fault = "the real CLI has no such fault on demand"
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir, _ := real(t)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over:   over,
		Script: clitest.Script{ErrorKind: cli.Refused},
		Cannot: map[clitest.Case]string{
			clitest.CrashInText: fault, clitest.CrashInTool: fault, clitest.SilentExit: fault, clitest.LongLine: fault,
			clitest.AbortDeaf: fault,
		},
		Patience: time.Minute,
	})
}
