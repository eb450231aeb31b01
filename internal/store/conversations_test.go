package store

import (
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// A bypass applies only in the process that stored it: not in the next process, even if that process cannot store the
// end, and not in a group that moves.
func TestABypassIsOfOneProcess(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "ductor.db")
	before := openAt(t, path)
	group, moved := orchestrator.ConversationID{Chat: -5}, orchestrator.ConversationID{Chat: -1000000000005}
	for _, id := range []orchestrator.ConversationID{chatA, group} {
		bypass := orchestrator.Conversation{ID: id, Permission: cli.Bypass, BypassUntil: noon}
		must(t, before.SaveConversation(ctx, bypass))
		same(t, "in its process", get[orchestrator.Conversation](t)(before.Conversation(ctx, id)), bypass)
	}
	must(t, before.SaveConversation(ctx, orchestrator.Conversation{ID: chatB, Permission: cli.Auto}))

	db := openAt(t, path)
	ask := func(id orchestrator.ConversationID) {
		t.Helper()
		same(t, "its mode", get[orchestrator.Conversation](t)(db.Conversation(ctx, id)),
			orchestrator.Conversation{ID: id, Permission: cli.Ask})
	}
	over := get[[]orchestrator.ConversationID](t)(db.EndedBypasses(ctx))
	same(t, "ended", over, []orchestrator.ConversationID{group, chatA})
	ask(chatA)
	ask(group)
	must(t, db.MoveChat(ctx, group.Chat, moved.Chat))
	ask(moved)
	again := orchestrator.Conversation{ID: chatA, Permission: cli.Bypass, BypassUntil: noon.Add(time.Hour)}
	must(t, db.SaveConversation(ctx, again))

	must(t, db.EndBypasses(ctx, over, noon))
	same(t, "left", get[[]orchestrator.ConversationID](t)(db.EndedBypasses(ctx)), []orchestrator.ConversationID(nil))
	ask(moved)
	same(t, "a new bypass", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatA)), again)
	same(t, "another mode", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatB)),
		orchestrator.Conversation{ID: chatB, Permission: cli.Auto})
	log := get[[]orchestrator.AuditEntry](t)(db.AuditSince(ctx, time.Time{}, 10))
	if len(log) != 2 || log[0].What != orchestrator.AuditMode || log[0].Title != "ask" || log[0].Reason == "" {
		t.Errorf("the audit is %+v", log)
	}
}
