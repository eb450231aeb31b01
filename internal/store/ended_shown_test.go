package store

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// Messages of turns that no longer wait and of closed approvals are listed until they show that.
func TestMessagesThatShowAnOldStateAreListed(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	turns := func(want ...cli.TurnID) {
		t.Helper()
		var ids []cli.TurnID
		for _, turn := range get[[]orchestrator.Turn](t)(db.TurnsShownWaiting(ctx)) {
			ids = append(ids, turn.ID)
		}
		same(t, "turns", ids, want)
	}
	approvals := func(want ...orchestrator.ApprovalID) {
		t.Helper()
		var ids []orchestrator.ApprovalID
		for _, a := range get[[]orchestrator.Approval](t)(db.ApprovalsShownOpen(ctx)) {
			ids = append(ids, a.ID)
		}
		same(t, "approvals", ids, want)
	}
	shows := func(key string, mark int64) {
		t.Helper()
		must(t, db.SaveMessage(ctx, orchestrator.Message{Key: key, Turn: "w", Conversation: chatA,
			State: orchestrator.Sent, ID: 3, Mark: mark}))
	}
	must(t, db.EnqueueTurn(ctx, newTurn("w")))
	shows("queued/w", 0)
	shows("card/w/0", 0)
	turns()
	get[bool](t)(db.CancelTurn(ctx, "w"))
	turns("w")
	shows("queued/w", orchestrator.EndShown)
	turns()

	startTurn(t, db, "t")
	get[orchestrator.Approval](t)(db.OpenApproval(ctx, newApproval("a", "t", "1"), "d"))
	shows("approval/a", -5)
	shows("approval/a/reminder", 0)
	approvals()
	must(t, errorOf2(db.DecideApproval(ctx, allowed("a"))))
	approvals("a")
	shows("approval/a", orchestrator.EndShown)
	approvals("a")
	must(t, db.SaveMessage(ctx, orchestrator.Message{Key: "approval/a/reminder", Turn: "t", Conversation: chatA,
		State: orchestrator.Removed}))
	approvals()
}

// Messages of an older version count as up to date, unless their turn or approval is open.
func TestMigrationOfEnds(t *testing.T) {
	turn := `INSERT INTO turns (id, chat, topic, person, prompt, message, state, agent, model, queued) VALUES `
	message := `INSERT INTO messages (key, turn, chat, topic, state, message, mark, moved) VALUES `
	db := openAt(t, makeOlder(t, "0038", turn+`('w', 7, 0, 1, 'p', 1, 'queued', '', '', 1),
		('x', 7, 0, 1, 'p', 1, 'cancelled', '', '', 1)`,
		message+`('queued/w', 'w', 7, 0, 'sent', 1, 0, 1), ('queued/x', 'x', 7, 0, 'sent', 2, 0, 1),
			('approval/a', 'x', 7, 0, 'sent', 3, -7, 1)`))
	for key, want := range map[string]int64{"queued/w": 0, "queued/x": orchestrator.EndShown,
		"approval/a": orchestrator.EndShown} {
		same(t, key, get[orchestrator.Message](t)(db.FindMessage(t.Context(), key)).Mark, want)
	}
}
