package store

import (
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

func TestEndBypasses(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: chatA, Permission: cli.Bypass, BypassUntil: noon}))
	must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: chatB, Permission: cli.Auto}))
	same(t, "ended", get[[]orchestrator.ConversationID](t)(db.EndBypasses(ctx, noon)),
		[]orchestrator.ConversationID{chatA})
	same(t, "ended", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatA)),
		orchestrator.Conversation{ID: chatA, Permission: cli.Ask})
	same(t, "another mode", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatB)),
		orchestrator.Conversation{ID: chatB, Permission: cli.Auto})
	same(t, "once more", get[[]orchestrator.ConversationID](t)(db.EndBypasses(ctx, noon)),
		[]orchestrator.ConversationID(nil))
	log := get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, time.Time{}, 10))
	if len(log) != 1 || log[0].What != orchestrator.AuditMode || log[0].Conversation != chatA || log[0].Reason == "" {
		t.Errorf("the audit is %+v", log)
	}
}
