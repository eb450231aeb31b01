package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/orchestrator"
)

// startTurn stores a running turn.
func startTurn(t testing.TB, db *DB, id cli.TurnID) orchestrator.Turn {
	t.Helper()
	turn := newTurn(id)
	turn.Agent, turn.Model, turn.Sandbox = "claude", "m", "web"
	must(t, db.EnqueueTurn(context.Background(), turn))
	turn.Started = noon
	if !get[bool](t)(db.StartTurn(context.Background(), turn, cli.Start{})) {
		t.Fatalf("turn %s did not start", id)
	}
	return turn
}

func newApproval(id orchestrator.ApprovalID, turn cli.TurnID, request cli.ApprovalID) orchestrator.Approval {
	return orchestrator.Approval{
		ID: id, Nonce: "n-" + string(id), Decision: orchestrator.Decision{State: orchestrator.ApprovalOpen},
		ApprovalTerms: orchestrator.ApprovalTerms{SessionRule: "Bash(make)", Rule: "Bash(make)",
			Approvers: []orchestrator.PersonID{7, 8}, Expires: noon.Add(time.Minute)},
		ApprovalRequest: orchestrator.ApprovalRequest{Turn: turn, Session: "s", Conversation: chatA, Agent: "claude",
			AgentIDs: []cli.ApprovalID{request}, Dir: "/src", Asked: noon,
			Request: &cli.ApprovalAsked{ID: request, Tool: "Bash", Title: "make", Detail: "make all",
				Input:   []byte(`{"command":"make"}`),
				Fields:  []cli.Field{{Name: "cwd", Value: "/etc", Weight: cli.WiderField}, {Name: "b", Value: ""}},
				Missing: "the end",
				Reason:  "of " + string(id), Started: "tool", Deaf: true,
				Changes: []cli.FileChanged{{Path: "x", Kind: cli.FileUpdated, Diff: "-a\n+b"}}}},
	}
}

// opened opens an approval.
func opened(t testing.TB, db *DB, a orchestrator.Approval, digest string) orchestrator.Approval {
	t.Helper()
	return get[orchestrator.Approval](t)(db.OpenApproval(context.Background(), a, digest))
}

func allowed(id orchestrator.ApprovalID) orchestrator.ApprovalDecision {
	return orchestrator.ApprovalDecision{Approval: id, Choice: orchestrator.AllowOnce,
		Decision: orchestrator.Decision{State: orchestrator.ApprovalAllowed, By: 7, Decided: noon}}
}

func TestOpenApproval(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "t")
	a := newApproval("a", "t", "1")
	same(t, "as it was opened", opened(t, db, a, "d"), a)
	same(t, "found", get[orchestrator.Approval](t)(db.FindApproval(ctx, "a")), a)
	q := newApproval("q", "t", "2")
	q.Request = nil
	q.Questions = []cli.Question{{Header: "H", Text: "T", Multi: true, Free: true, Secret: true,
		Options: []cli.Option{{Label: "L", Description: "D"}}}}
	same(t, "questions", opened(t, db, q, "q"), q)
	same(t, "open", get[[]orchestrator.Approval](t)(db.OpenApprovals(ctx)), []orchestrator.Approval{a, q})
	if err := errorOf(db.FindApproval(ctx, "none")); !errors.Is(err, orchestrator.ErrNoApproval) {
		t.Errorf("a missing approval: %v", err)
	}
	two := newApproval("two", "t", "3")
	two.AgentIDs = append(two.AgentIDs, "4")
	if err := errorOf(db.OpenApproval(ctx, two, "two")); err == nil {
		t.Error("a new approval with two agent IDs was stored")
	}
}

// If an older version stored a request without fields, users see its whole input. A version without effects stored the
// links in the request.
func TestLastProjectApproval(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "t")
	settings := func(id orchestrator.ApprovalID) orchestrator.Approval {
		a := newApproval(id, "t", cli.ApprovalID(id))
		a.Request.Tool = cli.ProjectTool
		return a
	}
	first, second, elsewhere := settings("first"), settings("second"), settings("elsewhere")
	denied, open := settings("denied"), settings("open")
	elsewhere.Dir = "/other"
	for i, a := range []orchestrator.Approval{first, second, elsewhere, denied, open,
		newApproval("command", "t", "c")} {
		opened(t, db, a, string(rune('a'+i)))
	}
	for _, id := range []orchestrator.ApprovalID{"first", "second", "elsewhere", "command", "denied"} {
		d := allowed(id)
		if id == "denied" {
			d.State = orchestrator.ApprovalDenied
		}
		_, won, err := db.DecideApproval(ctx, d)
		if err != nil || !won {
			t.Fatalf("%s: %v, %v", id, won, err)
		}
	}
	a, err := db.LastProjectApproval(ctx, chatA, "claude", "/src")
	if err != nil || a.ID != "second" || a.Request == nil {
		t.Errorf("the last one is %+v, %v", a, err)
	}
	if a, err := db.LastProjectApproval(ctx, chatA, "codex", "/src"); !errors.Is(err, orchestrator.ErrNoApproval) {
		t.Errorf("the last one of another agent is %+v, %v", a, err)
	}
}

func TestApprovalStoredByAnOlderVersion(t *testing.T) {
	var a orchestrator.Approval
	must(t, decodeRequest(`{"approval":{"input":{"command":"uptime","host":"prod"},
		"links":[{"path":"x","real":"/x"}]}}`, &a))
	same(t, "the links", a.Links, []orchestrator.Link{{Path: "x", Real: "/x"}})
	same(t, "the fields", a.Request.Fields, []cli.Field{{Name: "command", Value: "uptime"},
		{Name: "host", Value: "prod"}})
}

func errorOf[T any](_ T, err error) error { return err }

func TestEqualRequestsShareAnApproval(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "t")
	startTurn(t, db, "u")
	openAs := func(id orchestrator.ApprovalID, turn cli.TurnID, request cli.ApprovalID,
		digest string) orchestrator.Approval {
		return opened(t, db, newApproval(id, turn, request), digest)
	}
	openAs("a", "t", "1", "d")
	same(t, "of the same digest", openAs("b", "t", "2", "d").AgentIDs, []cli.ApprovalID{"1", "2"})
	named := func(a orchestrator.Approval) string { return string(a.ID) + " " + a.Request.Reason }
	same(t, "asked again", named(openAs("c", "t", "1", "d")), "a of c")
	same(t, "asked again, otherwise", named(openAs("e", "t", "1", "other")), "a of c")
	same(t, "of another digest", openAs("d", "t", "3", "e").ID, orchestrator.ApprovalID("d"))
	same(t, "of another turn", openAs("e", "u", "1", "d").ID, orchestrator.ApprovalID("e"))

	now, changed, err := db.WithdrawRequest(ctx, "t", "1", orchestrator.AuditWithdrawn, noon)
	if err != nil || !changed || now.State != orchestrator.ApprovalOpen {
		t.Errorf("one of two taken back: %+v, %v, %v", now, changed, err)
	}
	same(t, "the one that waits", now.AgentIDs, []cli.ApprovalID{"2"})
	same(t, "asked again", openAs("f", "t", "1", "d").AgentIDs, []cli.ApprovalID{"1", "2"})
	for _, request := range []cli.ApprovalID{"1", "2"} {
		now, changed, err = db.WithdrawRequest(ctx, "t", request, orchestrator.AuditWithdrawn, noon)
		must(t, err)
	}
	if !changed || now.State != orchestrator.ApprovalWithdrawn {
		t.Errorf("both taken back: %+v", now)
	}
	if _, changed, err = db.WithdrawRequest(ctx, "t", "2", orchestrator.AuditWithdrawn, noon); err != nil || changed {
		t.Errorf("taken back twice: %v, %v", changed, err)
	}
	same(t, "asked again when closed", named(openAs("g", "t", "1", "d")), "a of f")
	same(t, "a new one like a closed one", openAs("g", "t", "4", "d").ID, orchestrator.ApprovalID("g"))
	ruled := newApproval("h", "t", "5")
	ruled.State, ruled.Ruled, ruled.Decided = orchestrator.ApprovalAllowed, "Bash(make)", noon
	same(t, "one that a rule decided", opened(t, db, ruled, "d"), ruled)
	for _, what := range []orchestrator.AuditKind{orchestrator.AuditWithdrawn, orchestrator.AuditChanged} {
		now, changed, err = db.WithdrawRequest(ctx, "t", "5", what, noon)
		if err != nil || changed != (what == orchestrator.AuditChanged) {
			t.Errorf("an allowed one, %s: %+v, %v, %v", what, now, changed, err)
		}
	}
	last := get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, noon.Add(-time.Hour), 1))
	if last[0].What != orchestrator.AuditChanged || last[0].Approval != "h" {
		t.Errorf("the audit has %+v", last)
	}
}

func TestDecideApprovalOnceAndAtomically(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "t")
	a := opened(t, db, newApproval("a", "t", "1"), "d")
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("{}")},
		{ID: 2, Raw: []byte("{}")}}))
	d := allowed("a")
	d.Choice, d.Ruled, d.Updates = orchestrator.AllowPattern, "Bash(make)", []int64{1}
	d.Rule = &orchestrator.Rule{ID: "r", Conversation: chatA, Agent: "claude", Tool: "Bash", Dir: "/src",
		Kind: orchestrator.RuleCommand, Value: "make", Text: "Bash(make)", By: 7, Created: noon}
	now, won, err := db.DecideApproval(ctx, d)
	a.State, a.By, a.Ruled, a.Decided = orchestrator.ApprovalAllowed, 7, "Bash(make)", noon
	if err != nil || !won {
		t.Fatal(won, err)
	}
	same(t, "decided", now, a)
	same(t, "rules", get[[]orchestrator.Rule](t)(db.RulesOf(ctx, chatA)), []orchestrator.Rule{*d.Rule})
	late := d
	late.State, late.By, late.Updates = orchestrator.ApprovalDenied, 8, []int64{2}
	if now, won, err = db.DecideApproval(ctx, late); err != nil || won {
		t.Errorf("decided twice: %v, %v", won, err)
	}
	same(t, "as it stands for who came late", now, a)
	if n := len(get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9))); n != 1 {
		t.Errorf("%d updates are not handled, want the late one", n)
	}
	audit := get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, noon, 9))
	same(t, "audit", audit, []orchestrator.AuditEntry{{ID: 2, At: noon, What: orchestrator.AuditAllowed,
		Conversation: chatA, Turn: "t",
		Approval: "a", Agent: "claude", Tool: "Bash", Title: "make", Choice: orchestrator.AllowPattern, By: 7,
		Rule: "Bash(make)", Same: 1}, {ID: 1, At: noon, What: orchestrator.AuditRule,
		Conversation: chatA, Turn: "t", Agent: "claude", Tool: "Bash", Choice: orchestrator.AllowPattern, By: 7,
		Rule: "Bash(make)"}})
	if !errors.Is(errorOf2(db.DecideApproval(ctx, allowed("none"))), orchestrator.ErrNoApproval) {
		t.Error("a missing approval was decided")
	}
	// If the rule cannot be stored, the approval stays open.
	opened(t, db, newApproval("b", "t", "2"), "d2")
	twin := d
	twin.Approval = "b"
	if _, won, err = db.DecideApproval(ctx, twin); err == nil || won {
		t.Error("two rules have one id")
	}
	same(t, "still open", get[orchestrator.Approval](t)(db.FindApproval(ctx, "b")).State, orchestrator.ApprovalOpen)

	if ok := get[bool](t)(db.RevokeRule(ctx, "r", chatB, 8, noon)); ok {
		t.Error("revoked from another conversation")
	}
	if ok := get[bool](t)(db.RevokeRule(ctx, "r", chatA, 8, noon)); !ok ||
		len(get[[]orchestrator.Rule](t)(db.RulesOf(ctx, chatA))) > 0 {
		t.Error("not revoked")
	}
	if ok := get[bool](t)(db.RevokeRule(ctx, "r", chatA, 8, noon)); ok {
		t.Error("revoked twice")
	}
	if n := len(get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, noon.Add(time.Second), 9))); n != 0 {
		t.Errorf("%d entries since later", n)
	}
}

func errorOf2[T, U any](_ T, _ U, err error) error { return err }

// An approval can be allowed only while its turn runs, but denied at any time.
func TestApprovalIsNotAllowedAfterItsTurn(t *testing.T) {
	for name, end := range map[string]func(*DB) error{
		"over": func(db *DB) error { return db.FinishTurn(context.Background(), "t", noon, done("x")) },
		"aborted": func(db *DB) error {
			return db.AbortTurns(context.Background(), []cli.TurnID{"t"}, nil, orchestrator.Handled{})
		},
	} {
		for state, want := range map[orchestrator.ApprovalState]bool{
			orchestrator.ApprovalAllowed: false, orchestrator.ApprovalAnswered: false,
			orchestrator.ApprovalDenied: true, orchestrator.ApprovalExpired: true,
		} {
			db := newDB(t)
			startTurn(t, db, "t")
			opened(t, db, newApproval("a", "t", "1"), "d")
			must(t, end(db))
			d := allowed("a")
			d.State = state
			if _, won, err := db.DecideApproval(t.Context(), d); err != nil || won != want {
				t.Errorf("%s: %s: %v, %v", name, state, won, err)
			}
		}
	}
}

func TestWithdrawTurn(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "t")
	startTurn(t, db, "u")
	for _, a := range []orchestrator.Approval{newApproval("a", "t", "1"), newApproval("b", "t", "2"),
		newApproval("c", "u", "1"), newApproval("d", "t", "3")} {
		opened(t, db, a, string(a.ID))
	}
	must(t, errorOf2(db.DecideApproval(ctx, allowed("b"))))
	var ids []orchestrator.ApprovalID
	for _, a := range get[[]orchestrator.Approval](t)(db.WithdrawTurn(ctx, "t", noon)) {
		if a.State != orchestrator.ApprovalWithdrawn || !a.Decided.Equal(noon) {
			t.Errorf("withdrawn %+v", a)
		}
		ids = append(ids, a.ID)
	}
	same(t, "withdrawn", ids, []orchestrator.ApprovalID{"a", "d"})
	same(t, "nothing more", len(get[[]orchestrator.Approval](t)(db.WithdrawTurn(ctx, "t", noon))), 0)
	same(t, "decided, and then not wanted", get[orchestrator.Approval](t)(db.WithdrawApproval(ctx, "b", noon)).State,
		orchestrator.ApprovalWithdrawn)
}

func TestPruneOfApprovals(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "runs")
	startTurn(t, db, "over")
	for _, a := range []orchestrator.Approval{newApproval("open", "over", "1"), newApproval("decided", "over", "2"),
		newApproval("wanted", "runs", "1")} {
		opened(t, db, a, string(a.ID))
	}
	must(t, errorOf2(db.DecideApproval(ctx, allowed("decided"))))
	must(t, errorOf2(db.DecideApproval(ctx, allowed("wanted"))))
	must(t, db.FinishTurn(ctx, "over", noon, done("x")))
	pruned, err := db.Prune(ctx, noon)
	must(t, err)
	same(t, "of this very moment", pruned, Pruned{})
	pruned, err = db.Prune(ctx, noon.Add(time.Second))
	must(t, err)
	same(t, "pruned", pruned, Pruned{Approvals: 1})
	if n := count(t, db, `SELECT count(*) FROM audit`); n != 2 {
		t.Errorf("%d of 2 decisions are left: how long those are kept is for AuditTrail to say", n)
	}
	if n := count(t, db, `SELECT count(*) FROM ask_requests`); n != 2 {
		t.Errorf("%d requests are left", n)
	}
}

// TestPromote compares the queue with a list after random promotions, and tests that no turn changes otherwise.
func TestPromote(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		path := filepath.Join(t.TempDir(), "ductor.db")
		db, ctx := openAt(t, path), context.Background()
		defer db.Close()
		var want []cli.TurnID
		n := rapid.IntRange(1, 7).Draw(r, "turns")
		for i := range n {
			turn := newTurn(cli.TurnID(rune('a' + i)))
			if rapid.Bool().Draw(r, "elsewhere") {
				turn.Prompt.Conversation = chatB
			}
			must(t, db.EnqueueTurn(ctx, turn))
			if rapid.IntRange(0, 3).Draw(r, "starts") == 0 {
				get[bool](t)(db.StartTurn(ctx, turn, cli.Start{}))
			}
			want = append(want, turn.ID)
		}
		before := map[cli.TurnID]orchestrator.Turn{}
		for _, turn := range get[[]orchestrator.Turn](t)(db.OpenTurns(ctx)) {
			before[turn.ID] = turn
		}
		for range rapid.IntRange(1, 3).Draw(r, "promotions") {
			id := cli.TurnID(rune('a' + rapid.IntRange(0, n-1).Draw(r, "who")))
			ok := get[bool](t)(db.PromoteTurn(ctx, id))
			if ok != (before[id].State == orchestrator.TurnQueued) {
				r.Fatalf("promoted %s: %v", id, ok)
			}
			if ok {
				want = promote(want, id, before)
			}
		}
		var got []cli.TurnID
		for _, turn := range get[[]orchestrator.Turn](t)(db.OpenTurns(ctx)) {
			got = append(got, turn.ID)
			if d := cmp.Diff(before[turn.ID], turn); d != "" {
				r.Fatalf("a turn changed: %s", d)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			r.Fatal(d)
		}
	})
}

// promote returns the expected order after PromoteTurn(id): only turns in the same queue change their positions.
func promote(order []cli.TurnID, id cli.TurnID, turns map[cli.TurnID]orchestrator.Turn) []cli.TurnID {
	out := append([]cli.TurnID(nil), order...)
	moving := id
	for i, at := range order {
		if turns[at].State != orchestrator.TurnQueued ||
			turns[at].Prompt.Conversation != turns[id].Prompt.Conversation {
			continue
		}
		out[i], moving = moving, at
		if at == id {
			break
		}
	}
	return out
}

func TestSteerTurn(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	running := startTurn(t, db, "running")
	for _, id := range []cli.TurnID{"a", "b"} {
		must(t, db.EnqueueTurn(ctx, newTurn(id)))
	}
	if get[bool](t)(db.SteerTurn(ctx, "b", "a", noon)) || get[bool](t)(db.SteerTurn(ctx, "running", "running", noon)) {
		t.Error("a turn was steered although the other one was not running, or it was not waiting")
	}
	same(t, "in their order", openIDs(t, db), []cli.TurnID{"running", "a", "b"})
	if !get[bool](t)(db.SteerTurn(ctx, "b", "running", noon)) {
		t.Fatal("not steered")
	}
	b := get[orchestrator.Turn](t)(db.Turn(ctx, "b"))
	if b.State != orchestrator.TurnSteered || b.Entry.Into != "running" || b.Agent != running.Agent ||
		b.Sandbox != "web" ||
		b.Delivered {
		t.Errorf("steered as %+v", b)
	}
	if get[bool](t)(db.StartTurn(ctx, b, cli.Start{})) {
		t.Error("a steered turn started")
	}
	same(t, "until it is known to have arrived", openIDs(t, db), []cli.TurnID{"running", "b", "a"})
	if !get[bool](t)(db.UnsteerTurn(ctx, "b", "")) || get[bool](t)(db.UnsteerTurn(ctx, "b", "")) {
		t.Error("not unsteered exactly once")
	}
	want := newTurn("b")
	same(t, "taken back", get[orchestrator.Turn](t)(db.Turn(ctx, "b")), want)
	if get[bool](t)(db.MarkSteered(ctx, "b", "running")) {
		t.Error("a turn that waits again is marked as steered")
	}
	get[bool](t)(db.SteerTurn(ctx, "b", "running", noon))
	if get[bool](t)(db.MarkSteered(ctx, "b", "a")) || !get[bool](t)(db.MarkSteered(ctx, "b", "running")) {
		t.Error("not marked for exactly the turn that has it")
	}
	if get[bool](t)(db.CancelTurn(ctx, "b")) {
		t.Error("cancelled although it arrived")
	}
	if !get[bool](t)(db.UnsteerTurn(ctx, "b", "")) {
		t.Error("not unsteered although the agent did not read it")
	}
	same(t, "taken back from the agent", get[orchestrator.Turn](t)(db.Turn(ctx, "b")), want)
	get[bool](t)(db.SteerTurn(ctx, "b", "running", noon))
	get[bool](t)(db.MarkSteered(ctx, "b", "running"))
	if err := db.FinishTurn(ctx, "b", noon, done("x")); err == nil {
		t.Error("an outcome was stored although it arrived")
	}
	get[bool](t)(db.SteerTurn(ctx, "a", "running", noon))
	lost := orchestrator.Outcome{State: orchestrator.TurnInterrupted, Failure: "unknown",
		Recovery: orchestrator.Repeatable()}
	must(t, db.FinishTurn(ctx, "a", noon, lost))
	same(t, "lost", get[orchestrator.Turn](t)(db.Turn(ctx, "a")).Outcome, lost)
	must(t, db.EnqueueTurn(ctx, newTurn("c")))
	get[bool](t)(db.SteerTurn(ctx, "c", "running", noon))
	if !get[bool](t)(db.CancelTurn(ctx, "c")) ||
		get[orchestrator.Turn](t)(db.Turn(ctx, "c")).State != orchestrator.TurnCancelled {
		t.Error("not cancelled while being steered")
	}
}

// A steered turn returns right behind another turn if that one waits, and otherwise to the front of its queue.
func TestUnsteerTurnBehindAnother(t *testing.T) {
	for behind, want := range map[cli.TurnID][]cli.TurnID{
		"":        {"running", "b", "a", "c", "d"},
		"running": {"running", "b", "a", "c", "d"},
		"other":   {"running", "b", "a", "c", "d"},
		"a":       {"running", "a", "b", "c", "d"},
		"c":       {"running", "a", "c", "b", "d"},
		"d":       {"running", "a", "c", "d", "b"},
	} {
		db, ctx := newDB(t), t.Context()
		startTurn(t, db, "running")
		for _, id := range []cli.TurnID{"a", "b", "c", "d"} {
			must(t, db.EnqueueTurn(ctx, newTurn(id)))
		}
		other := newTurn("other")
		other.Prompt.Conversation.Chat++
		must(t, db.EnqueueTurn(ctx, other))
		if !get[bool](t)(db.SteerTurn(ctx, "b", "running", noon)) ||
			!get[bool](t)(db.MarkSteered(ctx, "b", "running")) || !get[bool](t)(db.UnsteerTurn(ctx, "b", behind)) {
			t.Fatal("not steered and unsteered")
		}
		same(t, "behind "+string(behind), openIDs(t, db), append(want, "other"))
	}
}

// TestDoubtSteered tests that only messages that counted as read are open again, in the order in which they were steered.
func TestDoubtSteered(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "running")
	for _, id := range []cli.TurnID{"a", "b", "c", "d"} {
		must(t, db.EnqueueTurn(ctx, newTurn(id)))
	}
	for i, id := range []cli.TurnID{"c", "b", "a"} {
		get[bool](t)(db.SteerTurn(ctx, id, "running", noon.Add(time.Duration(i)*time.Second)))
		if id != "b" {
			get[bool](t)(db.MarkSteered(ctx, id, "running"))
		}
	}
	doubted := func() (ids []cli.TurnID) {
		for _, turn := range get[[]orchestrator.Turn](t)(db.DoubtSteered(ctx, "running")) {
			if turn.State != orchestrator.TurnSteered || turn.Delivered {
				t.Errorf("doubted %+v", turn)
			}
			ids = append(ids, turn.ID)
		}
		return ids
	}
	same(t, "doubted", doubted(), []cli.TurnID{"c", "a"})
	same(t, "open", openIDs(t, db), []cli.TurnID{"running", "c", "b", "a", "d"})
	same(t, "doubted again", doubted(), []cli.TurnID(nil))
}

func openIDs(t *testing.T, db *DB) (all []cli.TurnID) {
	t.Helper()
	for _, turn := range get[[]orchestrator.Turn](t)(db.OpenTurns(t.Context())) {
		all = append(all, turn.ID)
	}
	return all
}
