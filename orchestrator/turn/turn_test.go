package turn

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/circuit"
)

// conversation records the turns that run later.
type conversation struct{ later []time.Time }

func (*conversation) PrepareAgain(
	context.Context, *orchestrator.Turn, Choice,
) (cli.Request, orchestrator.Session, error) {
	return cli.Request{}, orchestrator.Session{}, nil
}
func (*conversation) RequestReady(orchestrator.Turn, cli.Request, *atomic.Bool) {}
func (*conversation) PromptSent(context.Context, orchestrator.Turn)             {}
func (*conversation) CaughtUp(context.Context, orchestrator.Turn)               {}
func (*conversation) AwaitDisk(context.Context) bool                            { return false }

func (c *conversation) Titled(context.Context, orchestrator.Turn, string) {}

func (c *conversation) RunLater(_ context.Context, _ orchestrator.Turn, at time.Time) error {
	c.later = append(c.later, at)
	return nil
}

// gateway has one agent, so that no other takes its place.
type gateway struct{ orchestrator.Gateway }

func (gateway) Substitute(context.Context, cli.Sandbox, []cli.Agent) (cli.Agent, bool) {
	return "", false
}

// If the configuration waits for limits, a turn that reaches one runs later, unless something of it ran.
func TestATurnThatReachesALimitRunsLater(t *testing.T) {
	resets := time.Now().Add(time.Hour)
	for _, ran := range []bool{false, true} {
		c := &conversation{}
		r := NewRunner(Options{
			Gateway: gateway{}, Breakers: circuit.New(0, time.Now), Later: true, Lang: &lang.Choices{}, Now: time.Now,
			Settings: func() Settings { return Settings{Recovery: Recovery{Limits: orchestrator.LimitWait}} },
			Log:      slog.New(slog.DiscardHandler),
		})
		running := r.New(t.Context(), Start{Conversation: c, Turn: orchestrator.Turn{ID: "t", Agent: "claude"}})
		if ran {
			running.Events.Show(cli.TextDelta{Text: "some words"})
		}
		out := running.Failed(&cli.Failure{Kind: cli.LimitReached, Agent: "claude", ResetAt: resets})
		waits := slices.Equal(out.Recovery.Offer, []orchestrator.Action{orchestrator.ActionDrop})
		if waits == ran || slices.Contains(c.later, resets) == ran || !out.Recovery.At.Equal(resets) {
			t.Errorf("ran: %v, offers %v, runs at %v", ran, out.Recovery, c.later)
		}
	}
}
