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
	"ductor/orchestrator/approval"
)

// detachedHouse is a house whose agent asks ev and that is shut down while the request is open. Another house opens its store
// later.
type detachedHouse struct {
	path     string
	before   *house
	approval orchestrator.Approval
}

func detachWhileAsking(t *testing.T, ev cli.Event) detachedHouse {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	before := openAt(t, path, nil)
	before.agent.reply = func(ctx context.Context, who cli.Agent, _ cli.Request, emit func(cli.Event)) cli.Result {
		before.agent.request(ctx, emit, ev)
		<-ctx.Done()
		return cli.Cut(ctx, who)
	}
	before.submit(t, here, "go")
	var a orchestrator.Approval
	before.eventually(t, "an approval", func() bool {
		if all := before.board.all(); len(all) > 0 {
			a = all[0]
		}
		return a.ID != ""
	})
	return detachedHouse{path, before, a}
}

// next opens the next house, which finds the turn in this state. Its agent repeats all its requests.
func (d detachedHouse) next(t *testing.T, remains cli.Remains, evs ...cli.Event) *house {
	t.Helper()
	d.before.Detach(t.Context())
	h := openAt(t, d.path, nil)
	h.agent.remains = map[string]cli.Remains{"go": remains}
	h.agent.open = func(id cli.TurnID) string {
		turn, err := h.db.Turn(context.Background(), id)
		if err != nil {
			t.Error(err)
		}
		return turn.Prompt.Text
	}
	h.agent.reply = func(ctx context.Context, who cli.Agent, _ cli.Request, emit func(cli.Event)) cli.Result {
		told := h.agent.request(ctx, func(ev cli.Event) {
			emit(ev)
			if approvalID(ev) == approvalID(evs[len(evs)-1]) {
				emit(cli.CaughtUp{})
			}
		}, evs...)
		if ctx.Err() != nil || len(told) == 0 {
			return cli.Cut(ctx, who)
		}
		return cli.Result{Text: "told"}
	}
	return h
}

func TestAnApprovalOutlivesDuctor(t *testing.T) {
	d := detachWhileAsking(t, bash("a", "make"))
	h := d.next(t, cli.RemainsRun, bash("a", "make"))
	if open := d.before.board.all(); open[0].State != orchestrator.ApprovalOpen {
		t.Errorf("as ductor went the board said %s", open[0].State)
	}
	h.recover(t)
	a := h.awaitApproval(t, "make")
	if a.ID != d.approval.ID || a.Nonce != d.approval.Nonce || !a.Expires.Equal(d.approval.Expires) || a.Same() != 1 ||
		h.board.fresh > 0 {
		t.Errorf("taken up as %+v", a)
	}
	h.decide(t, a, allow())
	h.await(t, "done go")
	if got := h.agent.decisions(); !slices.Equal(got, []string{"a true []"}) {
		t.Errorf("the agent was told %q", got)
	}
	if _, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, here), orchestrator.Verdict{Choice: orchestrator.Deny}); !errors.Is(err, orchestrator.ErrApprovalDecided) {
		t.Errorf("pressed again: %v", err)
	}
	if n := len(h.board.all()); n != 1 {
		t.Errorf("%d approvals are shown", n)
	}
}

// A decision that is stored but did not arrive is delivered when the agent asks again; no user is asked twice.
func TestADecisionThatDuctorDiedOfArrives(t *testing.T) {
	for name, tc := range map[string]struct {
		decision orchestrator.Decision
		told     string
	}{
		"allowed": {orchestrator.Decision{State: orchestrator.ApprovalAllowed, By: owner}, "a true []"},
		"denied":  {orchestrator.Decision{State: orchestrator.ApprovalDenied, By: owner, Reason: "no"}, "a false no[]"},
		"expired": {orchestrator.Decision{State: orchestrator.ApprovalExpired, Reason: "late"}, "a false late[]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := detachWhileAsking(t, bash("a", "make"))
			tc.decision.Decided = time.Now()
			if _, won, err := d.before.db.DecideApproval(t.Context(), orchestrator.ApprovalDecision{Approval: d.approval.ID, Decision: tc.decision}); err != nil || !won {
				t.Fatal(won, err)
			}
			h := d.next(t, cli.RemainsRun, bash("a", "make"))
			h.recover(t)
			h.await(t, "done go")
			if got := h.agent.decisions(); !slices.Equal(got, []string{tc.told}) {
				t.Errorf("the agent was told %q", got)
			}
			// Its message may still have buttons.
			if all := h.board.all(); len(all) != 1 || all[0].State != tc.decision.State {
				t.Errorf("users are shown: %q", h.board.states())
			}
		})
	}
}

func TestASecretThatDuctorDiedOfIsNotMadeUp(t *testing.T) {
	secret := cli.QuestionAsked{ID: "a", Questions: []cli.Question{{Text: "Password?", Free: true, Secret: true}}}
	d := detachWhileAsking(t, secret)
	if _, won, err := d.before.db.DecideApproval(t.Context(), orchestrator.ApprovalDecision{Approval: d.approval.ID, Decision: orchestrator.Decision{State: orchestrator.ApprovalAnswered, By: owner}}); err != nil || !won {
		t.Fatal(won, err)
	}
	h := d.next(t, cli.RemainsRun, secret)
	h.recover(t)
	h.await(t, "done go")
	if got := h.agent.decisions(); len(got) != 1 || !strings.Contains(got[0], "a false ductor was restarted") {
		t.Errorf("the agent was told %q", got)
	}
}

func TestAPressBeforeTheAgentAskedAgainIsHandedOverThen(t *testing.T) {
	d := detachWhileAsking(t, bash("a", "make"))
	h := d.next(t, cli.RemainsRun, bash("a", "make"))
	begin := make(chan struct{})
	again := h.agent.reply
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		<-begin
		return again(ctx, who, req, emit)
	}
	h.recover(t)
	h.eventually(t, "the turn to be taken up", func() bool {
		h.agent.mu.Lock()
		defer h.agent.mu.Unlock()
		return len(h.agent.resumed) == 1
	})
	h.decide(t, d.approval, allow())
	close(begin)
	h.await(t, "done go")
	if got := h.agent.decisions(); !slices.Equal(got, []string{"a true []"}) {
		t.Errorf("the agent was told %q", got)
	}
}

func TestWhatExpiredWhileNobodyWasThereIsDenied(t *testing.T) {
	d := detachWhileAsking(t, bash("a", "make"))
	h := d.next(t, cli.RemainsRun, bash("a", "make"))
	h.clock.advance(approval.DefaultTimeout)
	h.recover(t)
	h.eventually(t, "it to expire", func() bool {
		h.clock.ring()
		return slices.Contains(h.chat.log(), "done go")
	})
	if got := h.agent.decisions(); len(got) != 1 || !strings.HasPrefix(got[0], "a false No user decided") {
		t.Errorf("the agent was told %q", got)
	}
}

func TestAsksOfATurnThatEndedAreWithdrawnAtTheStart(t *testing.T) {
	for _, remains := range []cli.Remains{cli.RemainsUnknown} {
		d := detachWhileAsking(t, bash("a", "make"))
		h := d.next(t, remains, bash("a", "make"))
		h.agent.reply = echo
		h.recover(t)
		if got := h.board.states(); !slices.Equal(got, []string{"make withdrawn ×1"}) {
			t.Errorf("%s: the board says %q", remains, got)
		}
		if _, err := h.Decide(t.Context(), d.approval.ID, d.approval.Nonce, by(owner, here), allow()); !errors.Is(err, orchestrator.ErrApprovalWithdrawn) {
			t.Errorf("%s: pressed: %v", remains, err)
		}
		h.shut()
	}
}

// A request that the agent made and withdrew while no ductor was running is not shown at all.
func TestWhatIsTakenBackBeforeItIsCaughtUpIsNotShown(t *testing.T) {
	d := detachWhileAsking(t, bash("a", "make"))
	h := d.next(t, cli.RemainsRun)
	h.agent.reply = func(_ context.Context, _ cli.Agent, _ cli.Request, emit func(cli.Event)) cli.Result {
		for _, ev := range []cli.Event{bash("a", "make"), cli.ApprovalWithdrawn{ID: "a"}, bash("b", "test"), cli.ApprovalWithdrawn{ID: "b"}, cli.CaughtUp{}} {
			emit(ev)
		}
		return cli.Result{}
	}
	h.recover(t)
	h.await(t, "done go")
	if got := h.board.states(); !slices.Equal(got, []string{"make withdrawn ×0"}) {
		t.Errorf("the board says %q", got)
	}
}

func TestAnApprovalOfAnAbortedTurnIsNotAllowedAfterARestart(t *testing.T) {
	d := detachWhileAsking(t, bash("a", "make"))
	must(t, d.before.db.AbortTurns(t.Context(), []cli.TurnID{d.approval.Turn}, nil, orchestrator.Handled{}))
	h := d.next(t, cli.RemainsRun, bash("a", "make"))
	if _, err := h.Decide(t.Context(), d.approval.ID, d.approval.Nonce, by(owner, here), allow()); !errors.Is(err, orchestrator.ErrApprovalWithdrawn) {
		t.Errorf("pressed: %v", err)
	}
	h.recover(t)
	h.await(t, "aborted go")
	if got := h.agent.decisions(); len(got) > 0 {
		t.Errorf("the agent was told %q", got)
	}
}

// The request of an agent in a terminal stays open when ductor ends. If the terminal asks again, it gets the decision.
// Otherwise the request is withdrawn. A terminal that comes back after that, or after the request expired, gets no
// decision and asks in the terminal itself.
func TestAQuestionOfATerminalWaitsForIt(t *testing.T) {
	press, late := orchestrator.Press{Conversation: here, Person: owner, Role: orchestrator.RoleOwner}, func(ctx context.Context) context.Context {
		ctx, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		cancel()
		return ctx
	}
	for name, tt := range map[string]struct {
		meanwhile func(*house, orchestrator.Approval)
		again     func(context.Context) context.Context
		want      cli.Decision
		err       error
		state     orchestrator.ApprovalState
	}{
		"decided before it asks again": {
			meanwhile: func(h *house, a orchestrator.Approval) { h.decide(t, a, allow()) },
			want:      cli.Decision{Allow: true}, state: orchestrator.ApprovalAllowed,
		},
		"it asks again too late": {
			meanwhile: func(h *house, _ orchestrator.Approval) { h.clock.advance(time.Minute); h.clock.ring() },
			err:       orchestrator.ErrApprovalWithdrawn, state: orchestrator.ApprovalWithdrawn,
		},
		"its time is over": {again: late, err: context.DeadlineExceeded, state: orchestrator.ApprovalWithdrawn},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			before := openAt(t, path, nil)
			ctx, leave := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := before.AskTerminal(ctx, press, "claude", "/src", "1", bash("", "make"))
				ended <- err
			}()
			a := before.awaitApproval(t, "make")
			leave(cli.ErrDetached)
			if err := <-ended; !errors.Is(err, cli.ErrDetached) || before.board.all()[0].State != orchestrator.ApprovalOpen {
				t.Errorf("as ductor ends: %v, %q", err, before.board.states())
			}
			before.Detach(t.Context())
			h := openAt(t, path, nil)
			h.recover(t)
			if tt.meanwhile != nil {
				tt.meanwhile(h, a)
			}
			again := t.Context()
			if tt.again != nil {
				again = tt.again(again)
			}
			d, err := h.AskTerminal(again, press, "claude", "/src", "1", bash("", "make"))
			if d.Allow != tt.want.Allow || d.Reason != "" || !errors.Is(err, tt.err) {
				t.Errorf("the terminal is told %+v, %v", d, err)
			}
			if all := h.board.all(); len(all) != 1 || all[0].ID != a.ID || all[0].State != tt.state {
				t.Errorf("the chat shows %q", h.board.states())
			}
		})
	}
}
