package turn

import (
	"context"
	"log/slog"
	"maps"
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
type gateway struct {
	orchestrator.Gateway
	accounts []cli.MenuEntry
}

func (g gateway) Accounts(context.Context, cli.Sandbox, cli.Agent) []cli.MenuEntry { return g.accounts }

func (gateway) Substitute(context.Context, cli.Sandbox, cli.Accounts, []cli.Agent) (cli.Agent, bool) {
	return "", false
}

// If the configuration waits for limits, a turn that reaches one runs later, unless something of it ran. Meanwhile its
// buttons run it with another account or agent, or cancel it.
func TestATurnThatReachesALimitRunsLater(t *testing.T) {
	resets := time.Now().Add(time.Hour)
	for ran, want := range map[bool][]orchestrator.Action{
		false: {"account/work", "handoff", "drop"}, true: {"later", "account/work", "handoff", "drop"},
	} {
		c := &conversation{}
		var asked cli.Accounts
		r := NewRunner(Options{
			Gateway: substitutes{gateway{accounts: []cli.MenuEntry{
				{Agent: "claude", Auth: cli.Auth{State: cli.Authenticated}},
				{Agent: "claude", Account: "work", Auth: cli.Auth{State: cli.Authenticated}},
			}}, &asked},
			Breakers: circuit.New(0, time.Now), Later: true, Lang: &lang.Choices{}, Now: time.Now,
			Store:    limits{},
			Settings: func() Settings { return Settings{Recovery: Recovery{Limits: orchestrator.LimitWait}} },
			Log:      slog.New(slog.DiscardHandler),
		})
		running := r.New(t.Context(), Start{Conversation: c, Turn: orchestrator.Turn{ID: "t", Agent: "claude"}})
		if ran {
			running.Events.Show(cli.TextDelta{Text: "some words"})
		}
		out := running.Failed(&cli.Failure{Kind: cli.LimitReached, Agent: "claude", ResetAt: resets})
		if !slices.Equal(out.Recovery.Offer, want) || slices.Contains(c.later, resets) == ran ||
			!out.Recovery.At.Equal(resets) {
			t.Errorf("ran: %v, offers %v, runs at %v", ran, out.Recovery, c.later)
		}
	}
}

// limits is a store with plan limits.
type limits struct {
	chosen
	all []cli.AccountLimits
}

func (s limits) PlanLimits(context.Context) ([]cli.AccountLimits, error) { return s.all, nil }

// At a limit a turn offers the accounts that can answer: at most two, logged in, and not at their own limits.
func TestOtherAccountsAreOfferedAtALimit(t *testing.T) {
	now := time.Now()
	entry := func(account cli.Account, state cli.AuthState, err error) cli.MenuEntry {
		return cli.MenuEntry{Agent: "claude", Account: account, Auth: cli.Auth{State: state}, Err: err}
	}
	full := func(account cli.Account, of string) cli.AccountLimits {
		return cli.AccountLimits{Agent: "claude", Account: account, Limits: []cli.PlanLimit{
			{Window: cli.LimitWindow{Span: 5 * time.Hour, Of: of}, Used: 1, Resets: now.Add(time.Hour), Seen: now},
		}}
	}
	breakers := circuit.New(0, time.Now)
	breakers.Ended("", "claude", "resting", &cli.Failure{Kind: cli.LimitReached, ResetAt: now.Add(time.Hour)})
	r := NewRunner(Options{
		Gateway: gateway{accounts: []cli.MenuEntry{
			entry("", cli.Authenticated, nil), entry("work", cli.Authenticated, nil), entry("out", cli.Installed, nil),
			entry("full", cli.Authenticated, nil), entry("resting", cli.Authenticated, nil),
			entry("elsewhere", cli.Authenticated, cli.ErrLoading), entry("opus", cli.Authenticated, nil),
			entry("third", cli.Authenticated, nil),
		}},
		Store:    limits{all: []cli.AccountLimits{full("", ""), full("full", ""), full("opus", "opus")}},
		Breakers: breakers, Later: true, Lang: &lang.Choices{}, Now: time.Now,
		Settings: func() Settings { return Settings{} }, Log: slog.New(slog.DiscardHandler),
	})
	failed := func(account cli.Account, f cli.Failure) []orchestrator.Action {
		turn := orchestrator.Turn{ID: "t", Agent: "claude", Entry: orchestrator.Entry{Account: account}}
		return r.New(t.Context(), Start{Turn: turn}).recovery(&f).Offer
	}
	limit := cli.Failure{Kind: cli.LimitReached, Agent: "claude", ResetAt: now.Add(time.Hour)}
	for _, tc := range []struct {
		account cli.Account
		failure cli.Failure
		want    []orchestrator.Action
	}{
		{"", limit, []orchestrator.Action{"later", "account/work", "account/opus", "drop"}},
		// The default account is at its limit.
		{"work", limit, []orchestrator.Action{"later", "account/opus", "account/third", "drop"}},
		{"", cli.Failure{Kind: cli.Crashed, Agent: "claude"}, []orchestrator.Action{"again"}},
	} {
		if got := failed(tc.account, tc.failure); !slices.Equal(got, tc.want) {
			t.Errorf("after %s, the account %q offers %v, want %v", tc.failure.Kind, tc.account, got, tc.want)
		}
	}
	if account, is := orchestrator.ActionAccount("").Account(); !is || account != "" {
		t.Errorf("the action of the default account is of %q, %v", account, is)
	}
	if _, is := orchestrator.ActionAgain.Account(); is {
		t.Error("another action counts as one of an account")
	}
}

// moved is the ID of a group that became a supergroup during a turn.
var moved = orchestrator.ConversationID{Chat: -1000000000005}

// chosen is a store with the accounts that a conversation chose. The conversation moved during its turn.
type chosen struct {
	orchestrator.Store
	accounts cli.Accounts
}

func (s chosen) Turn(_ context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	return orchestrator.Turn{ID: id, Prompt: orchestrator.Prompt{Conversation: moved}}, nil
}

func (s chosen) Conversation(_ context.Context, id orchestrator.ConversationID) (c orchestrator.Conversation, _ error) {
	if id == moved {
		c.Settings.Accounts = s.accounts
	}
	return c, nil
}

// substitutes records the accounts with which a substitute was looked for.
type substitutes struct {
	gateway
	of *cli.Accounts
}

func (s substitutes) Substitute(_ context.Context, _ cli.Sandbox, of cli.Accounts, _ []cli.Agent) (cli.Agent, bool) {
	*s.of = of
	return "codex", true
}

// A substitute uses the account that the conversation chose for it, so only the limit of that account counts.
func TestASubstituteUsesTheChosenAccount(t *testing.T) {
	var asked cli.Accounts
	breakers := circuit.New(0, time.Now)
	limit := &cli.Failure{Kind: cli.LimitReached, Agent: "codex", ResetAt: time.Now().Add(time.Hour)}
	breakers.Ended("", "codex", "", limit)
	r := NewRunner(Options{
		Gateway: substitutes{of: &asked}, Breakers: breakers, Now: time.Now, Lang: &lang.Choices{},
		Store:    chosen{accounts: cli.Accounts{"codex": "work", "claude": "changed meanwhile"}},
		Settings: func() Settings { return Settings{} }, Log: slog.New(slog.DiscardHandler),
	})
	turn := orchestrator.Turn{ID: "t", Agent: "claude", Entry: orchestrator.Entry{Account: "mine"}}
	if got := r.exhausted(t.Context(), turn, nil); len(got) != 0 {
		t.Errorf("exhausted are %v, though only another account of Codex is at its limit", got)
	}
	breakers.Ended("", "codex", "work", limit)
	if got := r.exhausted(t.Context(), turn, nil); !slices.Equal(got, []cli.Agent{"codex"}) {
		t.Errorf("exhausted are %v, want Codex", got)
	}
	r.substitute(t.Context(), turn, nil)
	if want := (cli.Accounts{"codex": "work", "claude": "mine"}); !maps.Equal(asked, want) {
		t.Errorf("the accounts are %v, want %v", asked, want)
	}
}
