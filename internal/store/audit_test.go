package store

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// A resumed turn reports its tools again. The audit has each tool once, and none that had an approval request.
func TestAuditSkipsRepeatedAndApprovedTools(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	startTurn(t, db, "t")
	approval := newApproval("a", "t", "1")
	approval.Request = &cli.ApprovalAsked{ID: "1", Tool: "Bash", Title: "make", Started: "asked"}
	get[orchestrator.Approval](t)(db.OpenApproval(ctx, approval, "d"))
	ran := func(turn cli.TurnID, call cli.ToolID) orchestrator.AuditEntry {
		return orchestrator.AuditEntry{At: noon, What: orchestrator.AuditRan, Conversation: chatA, Turn: turn,
			Call: call, Tool: "Read", Title: "a"}
	}
	must(t, db.RecordAudit(ctx, ran("t", "asked"), ran("t", "read"), ran("t", "read"), ran("u", "read")))
	must(t, db.RecordAudit(ctx, ran("t", "read"), ran("t", ""), ran("t", "")))
	var calls []string
	for _, e := range get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, noon, 9)) {
		calls = append(calls, string(e.Turn)+"/"+string(e.Call))
	}
	same(t, "calls", calls, []string{"t/", "t/", "u/read", "t/read"})
}

func TestSaveConversationAuditsTheChange(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	entry := orchestrator.AuditEntry{At: noon, What: orchestrator.AuditMode, Conversation: chatA,
		Title: "bypass", By: 7}
	if err := db.SaveConversation(ctx, orchestrator.Conversation{ID: chatA, Session: "none"}, entry); err == nil {
		t.Fatal("a conversation with a missing session was stored")
	}
	must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: chatA, Permission: cli.Bypass}, entry))
	entry.ID = 1
	same(t, "audit", get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, noon, 9)), []orchestrator.AuditEntry{entry})
}
