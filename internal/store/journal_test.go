package store

import (
	"path/filepath"
	"testing"
	"time"

	"ductor/orchestrator"
)

func TestInbox(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	take := func(updates ...orchestrator.Update) []orchestrator.Update {
		return get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, updates))
	}
	same(t, "of none", take(), []orchestrator.Update(nil))
	take(orchestrator.Update{ID: 11, Raw: []byte("eleven")}, orchestrator.Update{ID: 10, Raw: []byte{}}, orchestrator.Update{ID: 9})
	same(t, "of a known and a new one", take(orchestrator.Update{ID: 11, Raw: []byte("again")}, orchestrator.Update{ID: 12, Raw: []byte("\x00\xff")}),
		[]orchestrator.Update{{ID: 12, Raw: []byte("\x00\xff"), Received: noon}})
	want := []orchestrator.Update{{ID: 10, Raw: []byte{}, Received: noon}, {ID: 11, Raw: []byte("eleven"), Received: noon}, {ID: 12, Raw: []byte("\x00\xff"), Received: noon}}
	for _, c := range []struct {
		after int64
		limit int
		want  []orchestrator.Update
	}{{0, 9, want}, {10, 9, want[1:]}, {0, 1, want[:1]}, {12, 9, nil}, {0, 0, nil}} {
		same(t, "pending updates", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, c.after, c.limit)), c.want)
	}

	must(t, db.FinishUpdates(ctx, []int64{10, 12, 999}))
	must(t, db.FinishUpdates(ctx, []int64{10}))
	must(t, db.FinishUpdates(ctx, nil))
	same(t, "what is left", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)), want[1:2])
	same(t, "of a handled one", take(orchestrator.Update{ID: 10, Raw: []byte("delivered again")}), []orchestrator.Update(nil))
	same(t, "after a handled update came again", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)), want[1:2])
}

// TestAnIdThatTelegramUsesAgain: after a week without updates Telegram counts anew, from anywhere.
func TestAnIdThatTelegramUsesAgain(t *testing.T) {
	ctx, clock := t.Context(), noon
	db, err := Open(ctx, filepath.Join(t.TempDir(), "ductor.db"), Options{Now: func() time.Time { return clock }})
	must(t, err)
	defer db.Close()
	take := func(id int64, raw string) bool {
		return len(get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: id, Raw: []byte(raw)}}))) > 0
	}
	for id := int64(1); id <= 3; id++ {
		take(id, "of old")
	}
	must(t, db.FinishUpdates(ctx, []int64{1, 2}))
	clock = clock.Add(reuseAge)
	same(t, "taken a few days later", take(1, "another"), false)
	clock = clock.Add(4 * 24 * time.Hour)
	for _, c := range []struct {
		what string
		id   int64
		raw  string
		want bool
	}{
		{"another update", 1, "another", true},
		{"the same update, which Telegram gave up long ago", 2, "of old", true},
		{"one that is not handled yet", 3, "another", false},
		{"the other update again", 1, "another", false},
		{"yet another, too soon", 1, "yet another", false},
	} {
		same(t, c.what+" taken", take(c.id, c.raw), c.want)
	}
	same(t, "what is to be done", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)),
		[]orchestrator.Update{
			{ID: 1, Raw: []byte("another"), Received: clock}, {ID: 2, Raw: []byte("of old"), Received: clock},
			{ID: 3, Raw: []byte("of old"), Received: noon},
		})
}

func TestFinishUpdatesQueuesItsNotices(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1}}))
	must(t, db.FinishUpdates(ctx, []int64{1},
		orchestrator.Notice{Conversation: chatA, Content: []byte("one")},
		orchestrator.Notice{Conversation: chatB, Content: []byte("two"), State: orchestrator.Sent, Message: 3}))
	same(t, "notices", get[[]orchestrator.Notice](t)(db.PendingNotices(ctx)), []orchestrator.Notice{
		{ID: 1, Conversation: chatA, Content: []byte("one"), State: orchestrator.Pending},
		{ID: 2, Conversation: chatB, Content: []byte("two"), State: orchestrator.Pending},
	})
	same(t, "updates", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)), []orchestrator.Update(nil))
}

func TestNotices(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	states := []orchestrator.SendState{orchestrator.Pending, orchestrator.Sending, orchestrator.Sent,
		orchestrator.Unknown, orchestrator.Failed, orchestrator.Sending}
	for i, state := range states {
		id := get[int64](t)(db.PostNotice(ctx, orchestrator.Notice{Conversation: chatA, Content: []byte(state)}))
		if id != int64(i+1) {
			t.Fatalf("notice %d got id %d", i+1, id)
		}
		must(t, db.MoveNotice(ctx, id, state, 0))
	}
	notice := func(id int64, state orchestrator.SendState) orchestrator.Notice {
		return orchestrator.Notice{ID: id, Conversation: chatA, Content: []byte(states[id-1]), State: state}
	}
	same(t, "pending", get[[]orchestrator.Notice](t)(db.PendingNotices(ctx)),
		[]orchestrator.Notice{notice(1, orchestrator.Pending)})
	same(t, "lost", get[[]orchestrator.Notice](t)(db.LostNotices(ctx)),
		[]orchestrator.Notice{notice(2, orchestrator.Unknown), notice(6, orchestrator.Unknown)})
	same(t, "lost, asked again", get[[]orchestrator.Notice](t)(db.LostNotices(ctx)), []orchestrator.Notice(nil))
	if err := db.MoveNotice(ctx, 99, orchestrator.Sent, 1); err == nil {
		t.Error("a notice that is not there was moved")
	}
	if err := db.MoveNotice(ctx, 1, "posted", 1); err == nil {
		t.Error("a notice was moved to a state there is not")
	}
}

func TestCards(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	load := func(turn string) (string, []orchestrator.CardPart) {
		content, parts, err := db.LoadCard(ctx, turn)
		must(t, err)
		if content == nil {
			return "(none)", parts
		}
		return string(content), parts
	}
	content, parts := load("t1")
	same(t, "content of a card not known", content, "(none)")
	same(t, "parts of a card not known", parts, []orchestrator.CardPart(nil))

	must(t, db.SaveCardPart(ctx, "t1", 1, orchestrator.Pending, 0))
	must(t, db.SaveCardPart(ctx, "t1", 0, orchestrator.Sending, 0))
	must(t, db.SaveCardPart(ctx, "t1", 0, orchestrator.Sent, 77))
	must(t, db.SaveCardPart(ctx, "t2", 0, orchestrator.Sent, 78))
	content, parts = load("t1")
	same(t, "content of a card that still grows", content, "(none)")
	same(t, "parts", parts, []orchestrator.CardPart{{Part: 0, State: orchestrator.Sent, Message: 77}, {Part: 1, State: orchestrator.Pending}})

	must(t, db.SaveCard(ctx, "t1", nil))
	content, _ = load("t1")
	same(t, "empty content", content, "")
	must(t, db.SaveCard(ctx, "t1", []byte("final")))
	content, _ = load("t1")
	same(t, "content", content, "final")
}
