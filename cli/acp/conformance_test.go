package acp

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

func TestConformance(t *testing.T) {
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t, func(o *Options) {
				o.Grace = 500 * time.Millisecond
			})
			return p, cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over:   over,
		Script: clitest.Script{ErrorKind: cli.Refused},
		Cannot: clitest.Cannot{
			clitest.FailingTool: "the protocol has no exit codes; dialects that find them in the output show this",
		},
	})
}
