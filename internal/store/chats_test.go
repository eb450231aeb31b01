package store

import (
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// All data of a group moves to its new ID; data of another group stays.
func TestMoveChat(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	from, to := orchestrator.ConversationID{Chat: -5}, orchestrator.ConversationID{Chat: -1000000000005}
	for _, in := range []orchestrator.ConversationID{from, chatB} {
		name := string(in.Key())
		s := newSession(t, db, orchestrator.SessionID("s "+name), in, noon)
		must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: in, Session: s.ID, Agent: "codex"}))
		turn := newTurn(cli.TurnID("t " + name))
		turn.Prompt.Conversation, turn.Session = in, s.ID
		runTurn(t, db, turn, orchestrator.Outcome{State: orchestrator.TurnDone, Text: "an answer"})
		must(t, db.SaveJob(ctx, orchestrator.Job{ID: orchestrator.JobID("j " + name), Conversation: in}, noon, noon))
		aside := newTurn(cli.TurnID("c " + name))
		aside.Prompt.Conversation, aside.Session, aside.Outcome = in, s.ID, done("it is")
		aside.Entry.Kind = orchestrator.ConsultationEntry
		must(t, db.AddEntry(ctx, aside, nil))
	}
	for range 2 { // Telegram may report the move again
		must(t, db.MoveChat(ctx, from.Chat, to.Chat))
	}
	moved := get[orchestrator.Conversation](t)(db.Conversation(ctx, to))
	same(t, "chosen", moved, orchestrator.Conversation{ID: to, Session: "s -5/0", Agent: "codex"})
	same(t, "under the old id", get[orchestrator.Conversation](t)(db.Conversation(ctx, from)),
		orchestrator.Conversation{ID: from})
	if s := get[orchestrator.Session](t)(db.Session(ctx, moved.Session)); s.Conversation != to ||
		s.Totals.Messages != 2 {
		t.Errorf("its session is %+v", s)
	}
	if turn := get[orchestrator.Turn](t)(db.Turn(ctx, "t -5/0")); turn.Prompt.Conversation != to {
		t.Errorf("its turn is of %v", turn.Prompt.Conversation)
	}
	if j := get[orchestrator.JobStatus](t)(db.Job(ctx, "j -5/0")); j.Job.Conversation != to {
		t.Errorf("its job is of %v", j.Job.Conversation)
	}
	if c := get[orchestrator.Turn](t)(db.LastAside(ctx, to, "", orchestrator.ConsultationEntry)); c.ID != "c -5/0" {
		t.Errorf("its consultation is %v", c.ID)
	}
	same(t, "former ID", get[int64](t)(db.FormerChat(ctx, to.Chat)), from.Chat)
	same(t, "former ID of another group", get[int64](t)(db.FormerChat(ctx, chatB.Chat)), int64(0))
	if s := get[orchestrator.Session](t)(db.Session(ctx,
		orchestrator.SessionID("s "+string(chatB.Key())))); s.Conversation != chatB {
		t.Errorf("the session of another group is of %v", s.Conversation)
	}
}

// Choices under the new ID from before the move stay.
func TestMoveChatReplacesNothing(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: chatA, Agent: "codex"}))
	must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: orchestrator.ConversationID{Chat: -9},
		Agent: "gemini"}))
	newSession(t, db, "old", chatA, noon.Add(-time.Hour))
	must(t, db.MoveChat(ctx, chatA.Chat, -9))
	c := get[orchestrator.Conversation](t)(db.Conversation(ctx, orchestrator.ConversationID{Chat: -9}))
	if c.Agent != "gemini" {
		t.Errorf("the agent is %q", c.Agent)
	}
	if s := get[orchestrator.Session](t)(db.Session(ctx, "old")); s.Conversation.Chat != -9 {
		t.Errorf("the session is of %v", s.Conversation)
	}
}

// Every table with chat IDs is in groupTables or in the list of this test.
func TestMoveChatConsidersEveryTable(t *testing.T) {
	db := newDB(t)
	got := get[[]string](t)(sqlite.Many(t.Context(), db.file, sqlite.Value[string],
		`SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND c.name = 'chat' ORDER BY m.name`))
	// these stay: messages are in the old group, the budget is the old group's, and it had no topics
	want := append(groupTables(), "asks", "former_chats", "messages", "rates", "topics")
	slices.Sort(want)
	same(t, "tables", got, want)
}
