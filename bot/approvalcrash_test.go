package bot_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot"
	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// The writes that approvals add to a turn are steps as well.

func (s mortalStore) OpenApproval(ctx context.Context, a orchestrator.Approval, digest string) (now orchestrator.Approval, err error) {
	err = s.step("ask", func() (err error) { now, err = s.DB.OpenApproval(ctx, a, digest); return err })
	return now, err
}

func (s mortalStore) DecideApproval(ctx context.Context, d orchestrator.ApprovalDecision) (now orchestrator.Approval, won bool, err error) {
	err = s.step("decide", func() (err error) { now, won, err = s.DB.DecideApproval(ctx, d); return err })
	return now, won, err
}

func (s mortalStore) WithdrawTurn(ctx context.Context, turn cli.TurnID, at time.Time) (all []orchestrator.Approval, err error) {
	err = s.step("withdraw", func() (err error) { all, err = s.DB.WithdrawTurn(ctx, turn, at); return err })
	return all, err
}

// TestNoDeathLosesOrDoublesAnApproval kills ductor between any two writes while an agent asks and a user denies the
// request with a reason, and restarts it while the agent waits. The approval is in the chat once, or a notice that it
// may be; it can be decided; the agent gets the decision and the reason once.
func TestNoDeathLosesOrDoublesAnApproval(t *testing.T) {
	ask := bash("a", "make")
	everyDeath(t, askAndDie(t, ask, death{}), 20, func(t *testing.T, at int, after bool) { askAndDie(t, ask, death{at: at, after: after}) })
}

// A reason that must become a prompt does so once, whenever ductor dies between the two.
func TestNoDeathLosesOrDoublesAReason(t *testing.T) {
	deaf := bash("a", "make")
	deaf.Deaf = true
	decided := false
	nth := map[string]int{} // steps of other names come in any order
	for _, name := range askAndDie(t, deaf, death{}) {
		nth[name]++
		decided = decided || name == "decide"
		if name == "decide" || decided && name == "enqueue" {
			t.Run("after "+name, func(t *testing.T) { askAndDie(t, deaf, death{name, nth[name], true}) })
			t.Run("before "+name, func(t *testing.T) { askAndDie(t, deaf, death{name, nth[name], false}) })
		}
	}
	if !decided {
		t.Error("nothing was decided: the test kills nothing")
	}
}

func askAndDie(t *testing.T, ask cli.ApprovalAsked, when death) (steps []string) {
	withDatabase(t, func(t *testing.T, h *botRig, db *store.DB) {
		agent := agentAsking(ask)
		agent.gone = make(chan struct{})
		wire := bot.OnWire(h.opts.Transport)
		life := &mortal{transport: wire, death: when, died: make(chan struct{})}
		h.opts.Transport, agent.life = life, life
		first := startDuctor(t, h, mortalStore{life, db}, agent)
		h.ann.Send(h.chat, "go")
		h.denyWithReason("no")
		select {
		case <-life.died:
		case <-time.After(time.Minute):
		}
		_ = first.stop(time.Millisecond)
		steps = life.log

		h.opts.Transport, agent.life = wire, nil
		second := startDuctor(t, h, db, agent)
		h.denyWithReason("no")
		time.Sleep(time.Minute)
		if err := second.stop(enough); err != nil {
			t.Errorf("the second ductor ended with %v", err)
		}
		h.checkApproval(t, agent)
		if t.Failed() {
			t.Logf("told %q, steps %q\n%s\n%s", agent.toldAll(), life.log, h.chat.Transcript(), h.log)
		}
	})
	return steps
}

// denyWithReason denies the request with a reason, as a user would, with the buttons that the chat offers. It sends the
// reason once.
func (h *botRig) denyWithReason(reason string) {
	said := false
	for range 6 {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if m, ok := h.chat.View().Find("may be missing here"); ok && m.HasButton("👁 Show it") {
			_, _ = h.ann.Tap(m, "👁 Show it")
			continue
		}
		m, ok := h.chat.View().Find("May Claude")
		switch {
		case !ok:
		case m.HasButton("Deny with reason…"):
			_, _ = h.ann.Tap(m, "Deny with reason…")
		case m.HasButton("⛔ Deny without a reason"):
			if !said {
				h.ann.Send(h.chat, reason, telegram.ReplyTo(m.ID))
			}
			said = true
		}
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

func (h *botRig) checkApproval(t *testing.T, agent *askingAgent) {
	t.Helper()
	shown := h.chat.Transcript()
	if n := strings.Count(shown, "May Claude") + strings.Count(shown, " make"); n > 1 || n == 0 && !strings.Contains(shown, "Interrupted") {
		t.Errorf("the approval is shown %d times", n)
	}
	if told := agent.toldAll(); len(told) > 1 || len(told) == 1 && !slices.Equal(told, []string{"a false no[]"}) {
		t.Errorf("the agent was told %q", told)
	} else if len(told) == 0 && !strings.Contains(shown, "Interrupted") {
		t.Error("the agent was not told anything")
	}
	reasons := 0
	for _, prompt := range agent.prompts() {
		if strings.HasSuffix(prompt, "\nno") {
			reasons++
		}
	}
	if deaf := agent.asks[0].(cli.ApprovalAsked).Deaf; deaf != (reasons == 1) || !deaf && strings.Contains(shown, "Queued") {
		t.Errorf("the reason became %d prompts", reasons)
	}
	if m, ok := h.chat.View().Find("May Claude"); ok && len(m.Keyboard) > 0 {
		t.Errorf("what was decided has buttons: %v", m.Keyboard)
	}
}
