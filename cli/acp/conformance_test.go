package acp

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// withGrace returns p with another grace.
func withGrace(p cli.Provider, grace time.Duration) cli.Provider {
	o := p.(*Provider).opts
	o.Grace = grace
	return New(o)
}

func TestConformance(t *testing.T) {
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t, nil)
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over, Grace: withGrace,
		Script: clitest.Script{ErrorKind: cli.Refused},
		Cannot: clitest.Cannot{
			clitest.FailingTool: "the protocol has no exit codes; dialects that find them in the output show this",
		},
	})
}
