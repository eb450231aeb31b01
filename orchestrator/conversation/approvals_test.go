package conversation_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/conversation"
)

func TestADecisionReachesTheAgentAndTheAudit(t *testing.T) {
	question := cli.QuestionAsked{ID: "q", Questions: []cli.Question{
		{Text: "Which color?", Options: []cli.Option{{Label: "Red"}, {Label: "Blue"}}},
		{Text: "And why?", Free: true},
	}}
	for _, tc := range []struct {
		name    string
		ask     cli.Event
		verdict orchestrator.Verdict
		state   orchestrator.ApprovalState
		told    string
		audited orchestrator.AuditKind
	}{
		{"allowed", bash("a", "touch x"), allow(), orchestrator.ApprovalAllowed, "a true []", orchestrator.AuditAllowed},
		{"denied", bash("a", "touch x"), orchestrator.Verdict{Choice: orchestrator.Deny, Reason: " not now "},
			orchestrator.ApprovalDenied, "a false not now[]", orchestrator.AuditDenied},
		{"a plan", cli.ApprovalAsked{ID: "p", Tool: cli.PlanTool, Title: "the plan"}, allow(),
			orchestrator.ApprovalAllowed, "p true []", orchestrator.AuditAllowed},
		{"answered", question, orchestrator.Verdict{Choice: orchestrator.Answer, Answers: [][]string{{"Blue"}, {"it is calm"}}},
			orchestrator.ApprovalAnswered, "q true [[Blue] [it is calm]]", orchestrator.AuditAnswered},
		{"a question denied", question, orchestrator.Verdict{Choice: orchestrator.Deny}, orchestrator.ApprovalDenied, "q false []", orchestrator.AuditDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := open(t)
			h.asking(tc.ask)
			receipt := h.submit(t, here, "go")
			h.eventually(t, "an approval", func() bool { return len(h.board.all()) == 1 })
			a := h.board.all()[0]
			if diff := cmp.Diff([]orchestrator.PersonID{owner}, a.Approvers); diff != "" || a.Turn != receipt.Turn {
				t.Errorf("asked of turn %s, approvers %s", a.Turn, diff)
			}
			now := h.decide(t, a, tc.verdict)
			h.await(t, "done go")
			if now.State != tc.state || now.By != owner || !slices.Equal(h.agent.decisions(), []string{tc.told}) {
				t.Errorf("it is %s by %d; the agent was told %q", now.State, now.By, h.agent.decisions())
			}
			if last := h.board.all()[0]; last.State != tc.state {
				t.Errorf("the board says %s", last.State)
			}
			log, err := h.Audit(t.Context(), time.Time{}, 10)
			if err != nil || len(log) != 1 || log[0].What != tc.audited || log[0].By != owner || log[0].Approval != a.ID ||
				log[0].Choice != tc.verdict.Choice || log[0].Title != approvalTitle(a) || log[0].Agent != "claude" {
				t.Errorf("audited %+v, %v", log, err)
			}
		})
	}
}

// group is a conversation with two users who may decide, and others.
var group = orchestrator.ConversationID{Chat: -100, Topic: 4}

func openGroup(t *testing.T) *house {
	return openGroupOver(t, func(s orchestrator.Store) orchestrator.Store { return s })
}

func openGroupOver(t *testing.T, over func(orchestrator.Store) orchestrator.Store) *house {
	return openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) {
		o.Approvers = func(_ orchestrator.ConversationID, approvals orchestrator.PersonID) []orchestrator.PersonID {
			return []orchestrator.PersonID{approvals, 2}
		}
		o.Store = over(o.Store)
	})
}

// TestNoWrongPressAllows is the abuse suite: no wrong press makes the agent receive an allow.
func TestNoWrongPressAllows(t *testing.T) {
	elsewhere := orchestrator.ConversationID{Chat: group.Chat, Topic: 5}
	type press struct {
		h *house
		a orchestrator.Approval
	}
	allowed := func(p press, id orchestrator.ApprovalID, nonce string, who orchestrator.PersonID, in orchestrator.ConversationID) error {
		_, err := p.h.Decide(context.Background(), id, nonce, by(who, in), allow())
		return err
	}
	ends := func(t *testing.T, p press) {
		t.Helper()
		p.h.eventually(t, "the approval to close", func() bool { return p.h.board.all()[0].State != orchestrator.ApprovalOpen })
	}
	for _, tc := range []struct {
		name  string
		press func(*testing.T, press) error
		want  error
	}{
		{"unknown", func(_ *testing.T, p press) error { return allowed(p, "nothing", p.a.Nonce, 1, group) }, orchestrator.ErrNoApproval},
		{"forged", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, "AAAAAAAAAAAAAAAAAAAAAAAA", 1, group) }, orchestrator.ErrNoApproval},
		{"no nonce", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, "", 1, group) }, orchestrator.ErrNoApproval},
		{"a part of the nonce", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, p.a.Nonce[:23], 1, group) }, orchestrator.ErrNoApproval},
		{"another topic", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, p.a.Nonce, 1, elsewhere) }, orchestrator.ErrElsewhere},
		{"another chat", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, p.a.Nonce, 1, here) }, orchestrator.ErrElsewhere},
		{"a stranger", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, p.a.Nonce, 3, group) }, orchestrator.ErrNotApprover},
		{"nobody", func(_ *testing.T, p press) error { return allowed(p, p.a.ID, p.a.Nonce, 0, group) }, orchestrator.ErrNotApprover},
		{"after a denial", func(t *testing.T, p press) error {
			if _, err := p.h.Decide(t.Context(), p.a.ID, p.a.Nonce, by(2, group), orchestrator.Verdict{Choice: orchestrator.Deny}); err != nil {
				t.Fatal(err)
			}
			return allowed(p, p.a.ID, p.a.Nonce, 1, group)
		}, orchestrator.ErrApprovalDecided},
		{"as the time is over", func(_ *testing.T, p press) error {
			p.h.clock.advance(approval.DefaultTimeout)
			return allowed(p, p.a.ID, p.a.Nonce, 1, group)
		}, orchestrator.ErrApprovalExpired},
		{"after it expired", func(t *testing.T, p press) error {
			p.h.clock.advance(approval.DefaultTimeout)
			p.h.clock.ring()
			ends(t, p)
			return allowed(p, p.a.ID, p.a.Nonce, 1, group)
		}, orchestrator.ErrApprovalExpired},
		{"after an abort", func(t *testing.T, p press) error {
			if _, err := p.h.Abort(t.Context(), group); err != nil {
				t.Fatal(err)
			}
			return allowed(p, p.a.ID, p.a.Nonce, 1, group)
		}, orchestrator.ErrApprovalWithdrawn},
		{"after the turn", func(t *testing.T, p press) error {
			if _, err := p.h.Abort(t.Context(), group); err != nil {
				t.Fatal(err)
			}
			p.h.await(t, "aborted go")
			return allowed(p, p.a.ID, p.a.Nonce, 1, group)
		}, orchestrator.ErrApprovalWithdrawn},
		{"what the agent gave up, and has not said", func(_ *testing.T, p press) error {
			p.h.agent.giveUp("a")
			return allowed(p, p.a.ID, p.a.Nonce, 1, group)
		}, orchestrator.ErrApprovalWithdrawn},
		{"a choice that it has not", func(_ *testing.T, p press) error {
			_, err := p.h.Decide(context.Background(), p.a.ID, p.a.Nonce, by(1, group), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
			return err
		}, orchestrator.ErrBadChoice},
		{"no choice", func(_ *testing.T, p press) error {
			_, err := p.h.Decide(context.Background(), p.a.ID, p.a.Nonce, by(1, group), orchestrator.Verdict{})
			return err
		}, orchestrator.ErrBadChoice},
		{"an answer to no question", func(_ *testing.T, p press) error {
			_, err := p.h.Decide(context.Background(), p.a.ID, p.a.Nonce, by(1, group), orchestrator.Verdict{Choice: orchestrator.Answer})
			return err
		}, orchestrator.ErrBadChoice},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := openGroup(t)
			h.asking(bash("a", "rm -rf x; true"))
			h.submit(t, group, "go")
			p := press{h, h.awaitApproval(t, "rm -rf x; true")}
			if err := tc.press(t, p); !errors.Is(err, tc.want) {
				t.Errorf("refused with %v, not %v", err, tc.want)
			}
			h.shut()
			for _, told := range h.agent.decisions() {
				if strings.HasPrefix(told, "a true") {
					t.Error("the agent was allowed")
				}
			}
			if a := h.board.all()[0]; a.State == orchestrator.ApprovalAllowed {
				t.Error("it is shown as allowed")
			}
			rules, err := h.Permissions(t.Context(), group)
			if err != nil || len(rules.Rules) > 0 {
				t.Errorf("rules are %v, %v", rules, err)
			}
		})
	}
}

// An approval's nonce is not valid for another approval, and a decision of one turn is not valid in the next.
func TestANonceIsOfOneApproval(t *testing.T) {
	h := open(t)
	h.asking(bash("a", "make one"), bash("b", "make two"))
	h.submit(t, here, "go")
	one, two := h.awaitApproval(t, "make one"), h.awaitApproval(t, "make two")
	if _, err := h.Decide(t.Context(), one.ID, two.Nonce, by(owner, here), allow()); !errors.Is(err, orchestrator.ErrNoApproval) {
		t.Errorf("another's nonce: %v", err)
	}
	h.decide(t, one, allow())
	h.decide(t, two, orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done go")
	h.submit(t, here, "again")
	h.eventually(t, "four approvals", func() bool { return len(h.board.all()) == 4 })
	if _, err := h.Decide(t.Context(), one.ID, one.Nonce, by(owner, here), allow()); !errors.Is(err, orchestrator.ErrApprovalDecided) {
		t.Errorf("replayed in the next turn: %v", err)
	}
	if got := h.agent.decisions(); len(got) != 2 {
		t.Errorf("the agent was told %q", got)
	}
}

// barrierStore is a store in which the given number of callers of FindApproval wait for each other, so that all find the
// approval open.
type barrierStore struct {
	orchestrator.Store
	all sync.WaitGroup
}

func (m *barrierStore) FindApproval(ctx context.Context, id orchestrator.ApprovalID) (orchestrator.Approval, error) {
	a, err := m.Store.FindApproval(ctx, id)
	m.all.Done()
	m.all.Wait()
	return a, err
}

func TestOfTwoWhoPressAtOnceOneWins(t *testing.T) {
	for range 5 {
		h := openGroupOver(t, func(s orchestrator.Store) orchestrator.Store {
			m := &barrierStore{Store: s}
			m.all.Add(4)
			return m
		})
		h.asking(bash("a", "make"))
		h.submit(t, group, "go")
		a := h.awaitApproval(t, "make")
		verdicts := []orchestrator.Verdict{allow(), {Choice: orchestrator.Deny}, allow(), {Choice: orchestrator.Deny}}
		errs := make([]error, len(verdicts))
		var all sync.WaitGroup
		for i, v := range verdicts {
			all.Go(func() {
				_, errs[i] = h.Decide(context.Background(), a.ID, a.Nonce, by(orchestrator.PersonID(1+i%2), group), v)
			})
		}
		all.Wait()
		h.await(t, "done go")
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won < 0:
				won = i
			case !errors.Is(err, orchestrator.ErrApprovalDecided):
				t.Errorf("press %d: %v", i, err)
			}
		}
		if won < 0 {
			t.Fatalf("nobody won: %v", errs)
		}
		want := map[orchestrator.Choice]string{orchestrator.AllowOnce: "a true []", orchestrator.Deny: "a false []"}[verdicts[won].Choice]
		if got := h.agent.decisions(); !slices.Equal(got, []string{want}) {
			t.Errorf("%s won, and the agent was told %q", verdicts[won].Choice, got)
		}
		if log, err := h.Audit(t.Context(), time.Time{}, 10); err != nil || len(log) != 1 || log[0].By != orchestrator.PersonID(1+won%2) {
			t.Errorf("audited %+v, %v", log, err)
		}
		h.shut()
	}
}

func TestNobodyDecidesInTime(t *testing.T) {
	h := open(t)
	h.asking(bash("a", "make"))
	h.submit(t, here, "go")
	h.awaitApproval(t, "make")
	h.clock.advance(approval.DefaultTimeout - time.Second)
	h.clock.ring()
	if got := h.agent.decisions(); len(got) > 0 {
		t.Fatalf("too early the agent was told %q", got)
	}
	h.clock.advance(time.Second)
	h.clock.ring()
	h.await(t, "done go")
	if got := h.agent.decisions(); len(got) != 1 || !strings.HasPrefix(got[0], "a false No user decided in time") {
		t.Errorf("the agent was told %q", got)
	}
	if a := h.board.all()[0]; a.State != orchestrator.ApprovalExpired || a.Reason == "" {
		t.Errorf("the board says %s, %q", a.State, a.Reason)
	}
}

// The deadline for a decision follows the wall clock, however it jumps, and never takes longer than it should.
func TestTheTimeToDecideWhenTheClockJumps(t *testing.T) {
	for name, happens := range map[string]func(h *house, a orchestrator.Approval){
		"the machine slept, and is left alone": func(h *house, _ orchestrator.Approval) {
			h.clock.jump(time.Hour)
			h.clock.advance(time.Minute)
			h.clock.ring()
		},
		"the machine slept, and a button is pressed at once": func(h *house, a orchestrator.Approval) {
			h.clock.jump(time.Hour)
			now, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, here), allow())
			if !errors.Is(err, orchestrator.ErrApprovalExpired) || now.State != orchestrator.ApprovalExpired {
				t.Errorf("pressed: %s, %v", now.State, err)
			}
		},
		"the clock was set back": func(h *house, _ orchestrator.Approval) {
			h.clock.jump(-24 * time.Hour)
			for range int(approval.DefaultTimeout / time.Minute) {
				h.clock.advance(time.Minute)
				h.clock.ring()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.asking(bash("a", "make"))
			h.submit(t, here, "go")
			happens(h, h.awaitApproval(t, "make"))
			h.await(t, "done go")
			if got := h.agent.decisions(); len(got) != 1 || !strings.HasPrefix(got[0], "a false No user decided in time") {
				t.Errorf("the agent was told %q", got)
			}
		})
	}
}

func TestIdenticalRequestsAreOneApproval(t *testing.T) {
	h := open(t)
	other := bash("c", "make")
	other.Input = []byte(`{"command":"make","timeout":5}`)
	h.asking(bash("a", "make"), bash("b", "make"), other)
	h.submit(t, here, "go")
	h.eventually(t, "two approvals", func() bool {
		return slices.Equal(h.board.states(), []string{"make open ×2", "make open ×1"})
	})
	all := h.board.all()
	if h.board.fresh != len(all) {
		t.Errorf("%d approvals were shown as new ones, not %d", h.board.fresh, len(all))
	}
	h.decide(t, all[0], allow())
	h.decide(t, all[1], orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done go")
	if diff := cmp.Diff([]string{"a true []", "b true []", "c false []"}, h.agent.decisions()); diff != "" {
		t.Error(diff)
	}
	log, err := h.Audit(t.Context(), time.Time{}, 1)
	if err != nil || len(log) != 1 || log[0].What != orchestrator.AuditDenied {
		t.Errorf("the newest of the audit: %+v, %v", log, err)
	}
}

func TestWhatTheAgentTakesBackIsTakenFromTheBoard(t *testing.T) {
	h := open(t)
	end := make(chan struct{})
	h.agent.reply = func(ctx context.Context, _ cli.Agent, _ cli.Request, emit func(cli.Event)) cli.Result {
		emit(bash("a", "make"))
		emit(bash("b", "make"))
		emit(cli.ApprovalWithdrawn{ID: "a"})
		emit(bash("c", "test"))
		emit(cli.ApprovalWithdrawn{ID: "c"})
		<-end
		return cli.Result{}
	}
	h.submit(t, here, "go")
	h.eventually(t, "one withdrawn", func() bool {
		return slices.Equal(h.board.states(), []string{"make open ×1", "test withdrawn ×0"})
	})
	close(end)
	h.await(t, "done go")
	if got := h.board.states(); got[0] != "make withdrawn ×1" {
		t.Errorf("after the turn: %q", got)
	}
}

func TestTooManyRequestsAtOnceAreDenied(t *testing.T) {
	h := open(t)
	var evs []cli.Event
	for i := range 40 {
		evs = append(evs, bash(cli.ApprovalID(string(rune('A'+i))), "make "+string(rune('A'+i))))
	}
	h.asking(evs...)
	h.submit(t, here, "go")
	h.eventually(t, "8 denials", func() bool { return len(h.agent.decisions()) == 8 })
	for _, told := range h.agent.decisions() {
		if !strings.Contains(told, "false Too many") {
			t.Errorf("told %q", told)
		}
	}
	if n := len(h.board.all()); n != 32 {
		t.Errorf("%d are shown", n)
	}
}

func TestOnlyWhoCanBeAskedIs(t *testing.T) {
	for _, mode := range cli.PermissionModes() {
		h := open(t)
		must(t, h.SetPermission(t.Context(), here, mode, owner))
		h.submit(t, here, "go")
		h.awaitAsked(t, 1)
		if got := h.agent.requests()[0].Attended; !got {
			t.Errorf("%s: attended is %v", mode, got)
		}
	}
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) { o.Screen = nil })
	h.asking(bash("a", "make"))
	h.submit(t, here, "go")
	h.await(t, "done go")
	if got := h.agent.decisions(); h.agent.requests()[0].Attended || len(got) != 1 || !strings.HasPrefix(got[0], "a false No user can be asked") {
		t.Errorf("without a user the agent was told %q", got)
	}
}

func TestAnswersFitTheirQuestions(t *testing.T) {
	h := open(t)
	h.asking(cli.QuestionAsked{ID: "q", Questions: []cli.Question{
		{Text: "One?", Options: []cli.Option{{Label: "A"}, {Label: "B"}}},
		{Text: "Many?", Multi: true, Free: true, Options: []cli.Option{{Label: "C"}, {Label: "D"}}},
	}})
	h.submit(t, here, "go")
	a := h.awaitApproval(t, "One?")
	for _, bad := range [][][]string{nil, {{"A"}}, {{"A"}, {}}, {{"A", "B"}, {"C"}}, {{"X"}, {"C"}}, {{"A"}, {" "}}, {{"A"}, {"C"}, {"D"}}} {
		_, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, here), orchestrator.Verdict{Choice: orchestrator.Answer, Answers: bad})
		if !errors.Is(err, orchestrator.ErrBadChoice) {
			t.Errorf("%q was taken: %v", bad, err)
		}
	}
	h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.Answer, Answers: [][]string{{"B"}, {"D", "something else"}}})
	h.await(t, "done go")
}

func TestASecretAnswerIsToldAndNotKept(t *testing.T) {
	h := open(t)
	h.asking(cli.QuestionAsked{ID: "q", Questions: []cli.Question{{Text: "Password?", Free: true, Secret: true}}})
	h.submit(t, here, "go")
	a := h.awaitApproval(t, "Password?")
	now := h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.Answer, Answers: [][]string{{"hunter2"}}})
	h.await(t, "done go")
	if got := h.agent.decisions(); !slices.Equal(got, []string{"q true [[hunter2]]"}) {
		t.Errorf("told %q", got)
	}
	stored, err := h.Approval(t.Context(), a.ID, here)
	if err != nil || stored.Answers != nil || now.Answers != nil || h.board.all()[0].Answers != nil {
		t.Errorf("kept %v, returned %v, shown %v, %v", stored.Answers, now.Answers, h.board.all()[0].Answers, err)
	}
}

func TestAnApprovalIsOfItsConversation(t *testing.T) {
	h := open(t)
	h.asking(bash("a", "make"))
	h.submit(t, here, "go")
	a := h.awaitApproval(t, "make")
	if _, err := h.Approval(t.Context(), a.ID, there); !errors.Is(err, orchestrator.ErrElsewhere) {
		t.Errorf("loaded from another topic: %v", err)
	}
}
