package store

import (
	"errors"
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

func TestConsults(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	if _, err := db.LastConsult(ctx, chatA); !errors.Is(err, orchestrator.ErrNoConsult) {
		t.Errorf("before the first: %v", err)
	}
	first := orchestrator.Consult{
		ID: "1", Conversation: chatA, Model: orchestrator.ModelChoice{Agent: "codex", Model: "gpt", Effort: "high"},
		Sandbox: "box", Dir: "/work", Home: "s", Own: "own", Said: "all", Used: noon,
	}
	second := orchestrator.Consult{ID: "2", Conversation: chatA, Used: noon.Add(time.Minute)}
	must(t, db.SaveConsult(ctx, second))
	must(t, db.SaveConsult(ctx, first))
	same(t, "stored", get[orchestrator.Consult](t)(db.Consult(ctx, "1")), first)
	same(t, "the last", get[orchestrator.Consult](t)(db.LastConsult(ctx, chatA)), second)
	first.Used, first.Own = noon.Add(time.Hour), "another"
	must(t, db.SaveConsult(ctx, first))
	same(t, "used again", get[orchestrator.Consult](t)(db.LastConsult(ctx, chatA)), first)
	if _, err := db.LastConsult(ctx, chatB); !errors.Is(err, orchestrator.ErrNoConsult) {
		t.Errorf("of another chat: %v", err)
	}
	same(t, "deleted", get[Pruned](t)(db.Prune(ctx, noon.Add(30*time.Minute))), Pruned{Consults: 1})
	if _, err := db.Consult(ctx, "2"); !errors.Is(err, orchestrator.ErrNoConsult) {
		t.Errorf("after it was deleted: %v", err)
	}
}
