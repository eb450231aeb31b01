package claude

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A plain JSON turn shows nothing before its end.
func cannotJSON() clitest.Cannot {
	const unseen = "one result object holds the answer and nothing else"
	return clitest.Cannot{
		clitest.Thinking: unseen, clitest.ToolUse: unseen, clitest.FailingTool: unseen,
		clitest.CrashInText: unseen, clitest.CrashInTool: unseen, clitest.AbortText: unseen, clitest.ReplaceText: unseen,
		clitest.AbortTool: unseen, clitest.AbortDeaf: unseen, clitest.Deadline: unseen, clitest.CloseWithTools: unseen,
		clitest.LongLine: "there are no lines", clitest.AdoptText: unseen, clitest.AdoptTool: unseen, clitest.AdoptEnded: unseen,
		clitest.DetachThenAbort: unseen,
	}
}

// over is the provider over another launcher, as after a new start of ductor.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}

func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name   string
		mode   cli.Mode
		change func(*Options)
		cannot clitest.Cannot
	}{
		{"live", cli.Live, nil, nil},
		{"one-shot", cli.OneShot, nil, nil},
		{"one-shot json", cli.OneShot, plainJSON, cannotJSON()},
	} {
		t.Run(v.name, func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: v.mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir := scripted(t, func(o *Options) {
						o.Grace = 500 * time.Millisecond // what an agent that ignores SIGTERM costs here
						if v.change != nil {
							v.change(o)
						}
					})
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
				Over:   over,
				Script: clitest.Script{ErrorKind: cli.Refused},
				Cannot: v.cannot,
			})
		})
	}
}

// What the real CLI shows of the suite; the rest costs a second of processor a case.
func TestRealConformance(t *testing.T) {
	const (
		fault     = "the real CLI has no such fault on demand"
		elsewhere = "held by a test of its own"
		asLive    = "the same lines as live"
		ours      = "it is about the supervisor and this package, which the scripted agent shows as well"
	)
	live, oneShot := clitest.Cannot{}, clitest.Cannot{}
	for _, left := range []clitest.Cannot{live, oneShot} {
		left.Leave(fault, clitest.CrashInText, clitest.CrashInTool, clitest.SilentExit, clitest.AbortDeaf, clitest.LongLine)
		left.Leave(elsewhere, clitest.SecondTurn, clitest.ResumeSession, clitest.ModelError, clitest.FailingTool)
		left.Leave(ours, clitest.AbortBefore, clitest.AbortAway, clitest.Deadline, clitest.CloseUnused, clitest.TwoSessions,
			clitest.AdoptUnsent, clitest.AdoptEnded)
	}
	live.Leave(elsewhere, clitest.AdoptText, clitest.AdoptTool)
	oneShot.Leave(asLive, clitest.Thinking, clitest.AbortText, clitest.ReplaceText, clitest.AdoptText, clitest.CloseWithTools, clitest.DetachThenAbort)
	clitest.EachMode(t, clitest.Harness{
		Real: true,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, c, _ := real(t, nil)
			return p, cli.Request{Dir: c.Work, Permission: cli.Bypass}
		},
		Over: over, Script: clitest.Script{ErrorKind: cli.Refused}, Patience: time.Minute,
	}, map[cli.Mode]clitest.Cannot{cli.Live: live, cli.OneShot: oneShot})
}
