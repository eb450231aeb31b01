package claude

import (
	"maps"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A plain JSON turn shows nothing before its end.
func cannotJSON() map[clitest.Case]string {
	const unseen = "one result object holds the answer and nothing else"
	return map[clitest.Case]string{
		clitest.Thinking: unseen, clitest.ToolUse: unseen, clitest.FailingTool: unseen,
		clitest.CrashInText: unseen, clitest.CrashInTool: unseen, clitest.AbortText: unseen,
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
		cannot map[clitest.Case]string
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
	)
	live := map[clitest.Case]string{
		clitest.CrashInText: fault, clitest.CrashInTool: fault, clitest.SilentExit: fault,
		clitest.AbortDeaf: fault, clitest.LongLine: fault,
		clitest.SecondTurn: elsewhere, clitest.ResumeSession: elsewhere, clitest.ModelError: elsewhere,
	}
	oneShot := maps.Clone(live)
	live[clitest.AdoptText], live[clitest.AdoptTool] = elsewhere, elsewhere
	for _, c := range []clitest.Case{clitest.Thinking, clitest.FailingTool, clitest.AbortText, clitest.Deadline,
		clitest.AdoptText, clitest.AdoptEnded, clitest.CloseUnused} {
		oneShot[c] = asLive
	}
	for mode, cannot := range map[cli.Mode]map[clitest.Case]string{cli.Live: live, cli.OneShot: oneShot} {
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, c, _ := real(t, nil)
					return p, cli.Request{Dir: c.Work, Permission: cli.Bypass}
				},
				Over:     over,
				Script:   clitest.Script{ErrorKind: cli.Refused},
				Cannot:   cannot,
				Patience: time.Minute,
			})
		})
	}
}
