package gemini

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

const (
	noCode     = "it does not say how a command ended that printed something"
	noThoughts = "its one-shot stream has no reasoning"
)

func cannot(mode cli.Mode) clitest.Cannot {
	if mode == cli.Live {
		return clitest.Cannot{clitest.FailingTool: noCode}
	}
	return clitest.Cannot{clitest.Thinking: noThoughts, clitest.FailingTool: noCode}
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
			return p, cli.Request{Dir: dir, Project: cli.EmptyProject, Permission: cli.Bypass}
		},
		Over: over, Grace: withGrace, Script: clitest.Script{ErrorKind: cli.Refused},
	}, map[cli.Mode]clitest.Cannot{cli.Live: cannot(cli.Live), cli.OneShot: cannot(cli.OneShot)})
}

// These are the cases of the suite for the real CLI. The other cases are impossible with it, or cost seconds of CPU
// time each.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		elsewhere = "held by a test of its own"
		asSaid    = "the same lines as the scripted agent's, and seconds of processor"
	)
	live, oneShot := cannot(cli.Live), cannot(cli.OneShot)
	for _, left := range []clitest.Cannot{live, oneShot} {
		left.Leave(fault, clitest.CrashInText, clitest.CrashInTool, clitest.SilentExit, clitest.AbortDeaf, clitest.LongLine)
		left.Leave(asSaid, clitest.AbortBefore, clitest.AbortAway, clitest.CloseUnused, clitest.Deadline, clitest.SecondTurn, clitest.AbortText,
			clitest.CloseWithTools, clitest.AdoptText, clitest.AdoptEnded, clitest.AdoptUnsent, clitest.DetachThenAbort)
		left.Leave(elsewhere, clitest.ResumeSession)
	}
	oneShot.Leave(asSaid, clitest.TwoSessions)
	oneShot.Leave("it sends the model an aborted prompt again, together with the next one", clitest.ReplaceText, clitest.ReplaceTool)
	live.Leave("its model refuses what is said after a tool that was cut off, so the session goes on in another process", clitest.ReplaceTool)
	clitest.EachMode(t, clitest.Harness{
		Real: true,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, c, _ := real(t, nil)
			return p, cli.Request{Dir: c.Work, Project: cli.EmptyProject, Permission: cli.Bypass, Model: realModel}
		},
		Over: over, Script: clitest.Script{ErrorKind: cli.Refused}, Patience: time.Minute,
	}, map[cli.Mode]clitest.Cannot{cli.Live: live, cli.OneShot: oneShot})
}
