package circuit

import (
	"testing"
	"time"

	"ductor/cli"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func breakers(failures int) (*Breakers, *clock) {
	c := &clock{time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	return New(failures, c.now), c
}

func crash() *cli.Failure { return &cli.Failure{Kind: cli.Crashed, Agent: "claude", Code: 3} }

func TestAnAgentThatFailsInARowIsLeftAlone(t *testing.T) {
	b, c := breakers(3)
	for range 2 {
		b.Ended("", "claude", "", crash())
	}
	if f := b.Open("", "claude", ""); f != nil || !b.MayRepeat("", "claude", "") {
		t.Errorf("after two failures: %v", f)
	}
	b.Ended("", "claude", "", crash())
	f := b.Open("", "claude", "")
	if f == nil || f.Kind != cli.FailsOften || f.Code != 3 || !f.ResetAt.Equal(c.at.Add(time.Minute)) || b.MayRepeat("", "claude", "") {
		t.Fatalf("after three failures: %+v", f)
	}
	if b.Open("", "codex", "") != nil || b.Open("box", "claude", "") != nil {
		t.Error("another agent, or the same in another place, is left alone too")
	}
	if all := b.All("", nil); len(all) != 1 || all[0].Agent != "claude" {
		t.Errorf("left alone are %v", all)
	}
}

// After the pause the agent gets one turn, which nothing repeats. A failure makes the next pause longer, a success
// resets it.
func TestAfterThePauseOneTurnDecides(t *testing.T) {
	b, c := breakers(1)
	var last time.Duration
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		b.Ended("", "claude", "", crash())
		f := b.Open("", "claude", "")
		if last = f.ResetAt.Sub(c.at); last != want*time.Minute {
			t.Errorf("pause %d is %v", i, last)
		}
		c.at = f.ResetAt
		if b.Open("", "claude", "") != nil || b.MayRepeat("", "claude", "") {
			t.Error("after the pause it is to be asked, once")
		}
	}
	b.Ended("", "claude", "", nil)
	if !b.MayRepeat("", "claude", "") || len(b.All("", nil)) != 0 {
		t.Error("after a success all is well")
	}
}

func TestWhatAFailureSaysOfItsAgent(t *testing.T) {
	for kind, left := range map[cli.FailureKind]bool{
		// The agent is broken.
		cli.Crashed: true, cli.TimedOut: true, cli.BadOutput: true, cli.Overloaded: true, cli.APIFailed: true, cli.NetworkDown: true,
		// The agent works.
		cli.Refused: false, cli.AnswerCut: false, cli.ModelRefused: false, cli.DeniedTools: false, cli.LimitOfTurn: false, cli.ContextFull: false, cli.UnknownModel: false,
		// Handled separately.
		cli.NotInstalled: false, cli.NotLoggedIn: false, cli.ResumeFailed: false, cli.NoSandbox: false, cli.NoDirectory: false,
	} {
		b, _ := breakers(2)
		b.Ended("", "claude", "", crash())
		b.Ended("", "claude", "", &cli.Failure{Kind: kind, Agent: "claude"})
		if got := b.Open("", "claude", "") != nil; got != left {
			t.Errorf("%s: left alone is %v", kind, got)
		}
	}
	b, _ := breakers(1)
	b.Ended("", "claude", "", &cli.Failure{Kind: cli.TimedOut, Cause: cli.ErrStale})
	if b.Open("", "claude", "") != nil {
		t.Error("the sweep of a stale turn counts")
	}
}

// A crash after a limit counts as one crash, and the limit stays in place.
func TestALimitAndACrashAreTwoFacts(t *testing.T) {
	for _, failures := range []int{0, 2} {
		b, c := breakers(failures)
		limit := &cli.Failure{Kind: cli.LimitReached, Agent: "claude", ResetAt: c.at.Add(time.Hour)}
		b.Ended("", "claude", "", limit)
		b.Ended("", "claude", "", crash())
		if got := b.Open("", "claude", ""); got != limit {
			t.Errorf("with %d failures it is left alone because of %+v", failures, got)
		}
		c.at = limit.ResetAt
		if got := b.Open("", "claude", ""); got != nil {
			t.Errorf("with %d failures, after the limit: %+v", failures, got)
		}
		b.Ended("", "claude", "", crash())
		if got := b.Open("", "claude", ""); (got != nil) != (failures == 2) || got != nil && !got.ResetAt.Equal(c.at.Add(time.Minute)) {
			t.Errorf("with %d failures, after two crashes: %+v", failures, got)
		}
	}
}

// A usage limit applies until it ends, in all conversations.
func TestALimitLastsUntilItEnds(t *testing.T) {
	b, c := breakers(0)
	f := &cli.Failure{Kind: cli.LimitReached, Agent: "claude", ResetAt: c.at.Add(time.Hour)}
	b.Ended("", "claude", "", f)
	if got := b.Open("", "claude", ""); got != f {
		t.Errorf("it is left alone because of %v", got)
	}
	c.at = c.at.Add(time.Hour)
	if b.Open("", "claude", "") != nil {
		t.Error("the limit does not end")
	}
	b.Ended("", "claude", "", &cli.Failure{Kind: cli.LimitReached})
	if b.Open("", "claude", "") != nil {
		t.Error("a limit without an end leaves it alone for ever")
	}
}
