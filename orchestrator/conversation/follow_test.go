package conversation_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/circuit"
	"ductor/orchestrator/conversation"
)

// failing makes turns of Claude fail, after the event if there is one; other agents answer.
func failing(kind cli.FailureKind, after cli.Event) func(context.Context, cli.Agent, cli.Request,
	func(cli.Event)) cli.Result {
	return func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if who != "claude" {
			return echo(ctx, who, req, emit)
		}
		if after != nil {
			emit(after)
		}
		return cli.Result{Err: &cli.Failure{Kind: kind, Agent: who}}
	}
}

// openFailing opens a house whose Claude fails.
func openFailing(t testing.TB, kind cli.FailureKind, after cli.Event, change func(*conversation.Options)) *house {

	made := openAt(t, filepath.Join(t.TempDir(), "ductor.db"), func(o *conversation.Options) {
		o.Retries, o.RetryAfter = 2, time.Millisecond
		o.Now = time.Now
		if change != nil {
			change(o)
		}
	})
	made.agent.reply = failing(kind, after)
	return made
}

// Automatic reactions to a failure, by its kind. There is none once anything of the turn ran.
func TestWhatFollowsAFailureWithoutAsking(t *testing.T) {
	for kind, asked := range map[cli.FailureKind]int{
		cli.Crashed: 2, cli.TimedOut: 2, cli.Overloaded: 3, cli.APIFailed: 3, cli.Forbidden: 1,
		cli.LimitReached: 1, cli.NotInstalled: 1, cli.NotLoggedIn: 1, cli.BadOutput: 1, cli.NetworkDown: 1, cli.UnknownModel: 1,
		cli.ContextFull: 1, cli.Refused: 1, cli.AnswerCut: 1, cli.ModelRefused: 1, cli.DeniedTools: 1, cli.LimitOfTurn: 1, cli.ResumeFailed: 1, cli.UnknownFailure: 1,
	} {
		t.Run(string(kind), func(t *testing.T) {
			h := openFailing(t, kind, nil, nil)
			h.submit(t, here, "hello")
			h.await(t, "failed hello")
			if got := len(h.agent.requests()); got != asked {
				t.Errorf("it was asked %d times, want %d", got, asked)
			}
		})
		for name, ev := range map[string]cli.Event{
			"text": cli.TextDelta{Text: "half"}, "tool": cli.ToolStarted{ID: "1", Name: "Bash"}, "file": cli.FileChanged{Path: "a"},
		} {
			t.Run(string(kind)+" after a "+name, func(t *testing.T) {
				h := openFailing(t, kind, ev, nil)
				h.submit(t, here, "hello")
				h.await(t, "failed hello")
				if got := len(h.agent.requests()); got != 1 {
					t.Errorf("it was asked %d times", got)
				}
			})
		}
	}
}

// neverAsks is a gateway whose agents run in no mode in which they must ask.
type neverAsks struct{ orchestrator.Gateway }

func (neverAsks) CannotHold(agent cli.Agent, req cli.Request) *cli.Failure {
	if req.Permission == cli.Ask || req.Permission == cli.AcceptEdits {
		return &cli.Failure{Kind: cli.NotRun, Agent: agent, Reason: "it never asks"}
	}
	return nil
}

// An agent that ductor cannot hold to the mode of the chat runs the prompt in another one that a user taps. The chat
// stays in that mode. Another press, or one for a mode that was not offered, changes nothing.
func TestAButtonRunsThePromptInAnotherMode(t *testing.T) {
	h := openFailing(t, cli.NotRun, nil, func(o *conversation.Options) { o.Gateway = neverAsks{o.Gateway} })
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if f := (neverAsks{}).CannotHold(who, req); f != nil {
			return cli.Result{Err: f}
		}
		return echo(ctx, who, req, emit)
	}
	id := h.submit(t, here, "hello").Turn
	h.await(t, "failed hello")
	failed, err := h.db.Turn(t.Context(), id)
	want := []orchestrator.Action{"mode/plan", "mode/auto", "again"}
	if err != nil || !slices.Equal(failed.Outcome.Recovery.Offer, want) {
		t.Fatalf("it offers %v, want %v; %v", failed.Outcome.Recovery.Offer, want, err)
	}
	choose := func(what orchestrator.Action) error {
		_, err := h.Choose(t.Context(), id, what, by(owner, here))
		return err
	}
	mode := func() cli.PermissionMode {
		p, err := h.Permissions(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		return p.Mode
	}
	for _, never := range []cli.PermissionMode{cli.Bypass, cli.AcceptEdits} {
		err := choose(orchestrator.ActionMode(never))
		if !errors.Is(err, orchestrator.ErrBadChoice) || mode() != cli.Ask {
			t.Errorf("%s: %v, and the chat is in %s", never, err, mode())
		}
	}
	if err := choose("mode/auto"); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done hello")
	if mode() != cli.Auto {
		t.Errorf("the chat is in %s", mode())
	}
	if err := choose("mode/plan"); !errors.Is(err, orchestrator.ErrRepeated) || mode() != cli.Auto {
		t.Errorf("the second press: %v, and the chat is in %s", err, mode())
	}
	audit, err := h.Audit(t.Context(), time.Time{}, 1)
	if err != nil || len(audit) != 1 || audit[0].What != orchestrator.AuditMode || audit[0].Title != "auto" ||
		audit[0].By != owner {
		t.Errorf("the audit has %+v, %v", audit, err)
	}
}

// A turn with limited rights offers only modes that its rights allow.
func TestALimitedTurnOffersOnlyItsModes(t *testing.T) {
	h := openFailing(t, cli.NotRun, nil, func(o *conversation.Options) {
		o.Gateway, o.Orders = neverAsks{o.Gateway}, o.Store.(orchestrator.OrderStore)
	})
	for limit, want := range map[cli.PermissionMode][]orchestrator.Action{
		cli.Ask:  {"mode/plan", "again"},
		cli.Auto: {"mode/plan", "mode/auto", "again"},
	} {
		o := order(string(limit), string(limit), orchestrator.Wants{})
		o.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfPress, Mode: limit}
		h.order(t, o)
		h.await(t, "failed "+string(limit))
		turn, err := h.db.Turn(t.Context(), o.Turn)
		if err != nil || !slices.Equal(turn.Outcome.Recovery.Offer, want) {
			t.Errorf("at most %s: it offers %v, want %v; %v", limit, turn.Outcome.Recovery.Offer, want, err)
		}
	}
}

// A configured substitute runs a turn if the agent is not available, unless the user chose the agent for the message.
func TestASubstituteRunsTheTurn(t *testing.T) {
	for _, kind := range []cli.FailureKind{cli.NotInstalled, cli.NotLoggedIn} {
		h := openFailing(t, kind, nil, nil)
		h.agent.instead.agent = "codex"
		id := h.submit(t, here, "hello").Turn
		h.awaitEnded(t, id)
		of, err := h.db.Turn(t.Context(), id)
		if err != nil || of.Agent != "codex" || of.Outcome.Recovery.Replaced != "claude" {
			t.Errorf("%s: the turn is %+v, %v", kind, of, err)
		}
		if _, err := h.Submit(t.Context(), orchestrator.Prompt{Conversation: here, Person: 1, Text: "to you", Updates: []int64{1 << 41}}, orchestrator.Wants{Agent: "claude"}); err != nil {
			t.Fatal(err)
		}
		h.await(t, "failed to you")
		if got := len(h.agent.requests()); got != 3 {
			t.Errorf("%s: asked %d times", kind, got)
		}
	}
}

// After several failed turns in a row the substitute runs turns at once. A user who chooses the agent gets it, without
// retries.
func TestAnAgentThatFailsOftenIsLeftAlone(t *testing.T) {
	h := openFailing(t, cli.Crashed, nil, func(o *conversation.Options) { o.Breakers = circuit.New(2, time.Now) })
	first := h.submit(t, here, "one")
	h.await(t, "failed one")
	h.submit(t, here, "two")
	h.await(t, "failed two")
	if got := len(h.agent.requests()); got != 4 { // each once more
		t.Fatalf("asked %d times", got)
	}
	st, err := h.Status(t.Context(), here)
	if err != nil || len(st.Live.Resting) != 1 || !strings.Contains(st.Live.Resting[0].Error(), "Claude failed 2 times in a row, so I pause it until") {
		t.Errorf("the status says %+v, %v", st.Live.Resting, err)
	}
	menu, err := h.Menu(t.Context(), here)
	if err != nil || len(menu) != 1 || menu[0].Resting == nil {
		t.Errorf("the menu says %+v, %v", menu, err)
	}

	h.submit(t, here, "three") // there is no substitute, so the agent is tried once
	h.await(t, "failed three")
	h.agent.mu.Lock()
	h.agent.instead.agent = "codex"
	h.agent.mu.Unlock()
	h.submit(t, here, "four")
	h.await(t, "done four")
	h.awaitEnded(t, first.Turn)
	if _, err := h.Choose(t.Context(), first.Turn, orchestrator.ActionAgain, by(1, here)); err != nil {
		t.Fatal(err)
	}
	h.awaitAsked(t, 7)
	var agents []string
	h.agent.mu.Lock()
	for _, who := range h.agent.agents[4:] {
		agents = append(agents, string(who))
	}
	h.agent.mu.Unlock()
	if got := strings.Join(agents, " "); got != "claude codex claude" {
		t.Errorf("asked were %s", got)
	}
}

// An agent at its limit gets no turns if limits are handed over.
func TestALimitThatIsKnownIsAvoidedAsConfigured(t *testing.T) {
	for policy, want := range map[orchestrator.LimitPolicy]string{orchestrator.LimitAsk: "claude claude", orchestrator.LimitHandOff: "claude codex codex"} {
		h := openFailing(t, cli.LimitReached, nil, func(o *conversation.Options) {
			o.Breakers, o.Limits = circuit.New(3, time.Now), policy
		})
		h.agent.instead.agent = "codex"
		h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
			if who == "codex" {
				return echo(ctx, who, req, emit)
			}
			return cli.Result{Err: &cli.Failure{Kind: cli.LimitReached, Agent: who, ResetAt: time.Now().Add(time.Hour)}}
		}
		a, b := h.submit(t, here, "one"), h.submit(t, here, "two")
		h.awaitEnded(t, a.Turn)
		h.awaitEnded(t, b.Turn)
		var got []string
		for _, who := range h.agent.agents {
			got = append(got, string(who))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: asked were %v", policy, got)
		}
	}
}

// A limit and a crash redirect no turn if users decide about limits. The user's own choice is tried in any case.
func TestAUsersChoicePassesTheBreaker(t *testing.T) {
	for policy, want := range map[orchestrator.LimitPolicy]string{
		// One retry after the crash, then two turns without a choice and one with a choice.
		orchestrator.LimitAsk:     "claude claude claude claude",
		orchestrator.LimitHandOff: "claude codex codex codex claude",
	} {
		failures := []*cli.Failure{
			{Kind: cli.LimitReached, Agent: "claude", ResetAt: time.Now().Add(time.Hour)}, {Kind: cli.Crashed, Agent: "claude"},
		}
		h := openFailing(t, cli.LimitReached, nil, func(o *conversation.Options) { o.Breakers, o.Limits = circuit.New(0, time.Now), policy })
		h.agent.instead.agent = "codex"
		h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
			if who == "codex" || len(failures) == 0 {
				return echo(ctx, who, req, emit)
			}
			f := failures[0]
			failures = failures[1:]
			return cli.Result{Err: f}
		}
		for _, prompt := range []string{"one", "two", "three"} {
			h.awaitEnded(t, h.submit(t, here, prompt).Turn)
		}
		if policy == orchestrator.LimitHandOff {
			failures = nil
			if err := h.SetModel(t.Context(), here, "claude", "", ""); err != nil {
				t.Fatal(err)
			}
			h.awaitEnded(t, h.submit(t, here, "four").Turn)
		}
		var got []string
		for _, who := range h.agent.agents {
			got = append(got, string(who))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: asked were %v, want %s", policy, got, want)
		}
	}
}

// TestWhoEndsRetriesHearsOfTheTurn ends retries while the turn waits and after it has ended: then its card has the
// buttons of its end, which stay.
func TestWhoEndsRetriesHearsOfTheTurn(t *testing.T) {
	h := openFailing(t, cli.Overloaded, nil, func(o *conversation.Options) { o.RetryAfter = time.Hour })
	r := h.submit(t, here, "hello")
	h.awaitAsked(t, 1)
	for range 2 {
		receipt, err := h.Choose(t.Context(), r.Turn, orchestrator.ActionDrop, by(1, here))
		if err != nil || receipt.Turn != r.Turn {
			t.Errorf("the receipt is %+v, %v", receipt, err)
		}
		h.await(t, "failed hello")
		h.awaitEnded(t, r.Turn)
	}
}
