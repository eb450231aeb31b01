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

// What the real CLI shows of the suite; the rest it cannot be made to do.
func TestRealConformance(t *testing.T) {
	const (
		fault = "the real CLI has no such fault on demand"
		shell = "the parent of its shells is a helper, whose end it survives"
	)
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir, _ := real(t)
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
				Over:   over,
				Script: clitest.Script{ErrorKind: cli.Refused},
				Cannot: map[clitest.Case]string{
					clitest.CrashInText: fault, clitest.SilentExit: fault, clitest.LongLine: fault, clitest.AbortDeaf: fault,
					clitest.CrashInTool: shell,
				},
				Patience: time.Minute,
			})
		})
	}
}
