package store

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

func TestInbox(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	take := func(updates ...orchestrator.Update) []orchestrator.Update {
		return get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, updates))
	}
	same(t, "of none", take(), []orchestrator.Update(nil))
	take(orchestrator.Update{ID: 11, Raw: []byte("eleven")}, orchestrator.Update{ID: 10, Raw: []byte{}},
		orchestrator.Update{ID: 9})
	same(t, "of a known and a new one", take(orchestrator.Update{ID: 11, Raw: []byte("again")},
		orchestrator.Update{ID: 12, Raw: []byte("\x00\xff")}),
		[]orchestrator.Update{{ID: 12, Raw: []byte("\x00\xff"), Received: noon}})
	want := []orchestrator.Update{{ID: 10, Raw: []byte{}, Received: noon}, {ID: 11, Raw: []byte("eleven"),
		Received: noon}, {ID: 12, Raw: []byte("\x00\xff"), Received: noon}}
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
	same(t, "of a handled one", take(orchestrator.Update{ID: 10, Raw: []byte("delivered again")}),
		[]orchestrator.Update(nil))
	same(t, "after a handled update came again", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)), want[1:2])
}

// TestReusedUpdateID: after a week without updates, Telegram restarts its numbering anywhere.
func TestReusedUpdateID(t *testing.T) {
	ctx, clock := t.Context(), noon
	db, err := Open(ctx, filepath.Join(t.TempDir(), "ductor.db"), Options{Now: func() time.Time { return clock }})
	must(t, err)
	defer db.Close()
	take := func(id int64, raw string) bool {
		return len(get[[]orchestrator.Update](t)(db.AppendUpdates(ctx,
			[]orchestrator.Update{{ID: id, Raw: []byte(raw)}}))) > 0
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
	one := orchestrator.Message{Key: "notice/1", Conversation: chatA, State: orchestrator.Pending,
		Content: []byte("one")}
	two := orchestrator.Message{Key: "stop/2", Conversation: chatB, State: orchestrator.Sent, ID: 3,
		Content: []byte("two")}
	must(t, db.FinishUpdates(ctx, []int64{1}, one, two))
	same(t, "messages", get[[]orchestrator.Message](t)(db.OwedMessages(ctx)), []orchestrator.Message{one, two})
	same(t, "updates", get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)), []orchestrator.Update(nil))
}

func TestMessages(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	save := func(m orchestrator.Message) orchestrator.Message {
		must(t, db.SaveMessage(ctx, m))
		same(t, m.Key, get[orchestrator.Message](t)(db.FindMessage(ctx, m.Key)), m)
		return m
	}
	same(t, "of none", get[orchestrator.Message](t)(db.FindMessage(ctx, "nothing")), orchestrator.Message{})
	first := save(orchestrator.Message{Key: "card/a/0", Turn: "a", Conversation: chatB, State: orchestrator.Sending,
		Mark: 1 << 33})
	save(orchestrator.Message{Key: "notice/1", Conversation: chatA, State: orchestrator.Pending,
		Content: []byte("late")})
	second := save(orchestrator.Message{Key: "card/a/1", Turn: "a", Conversation: chatB, State: orchestrator.Pending})
	first.State, first.ID = orchestrator.Sent, 12
	save(first)
	done := save(orchestrator.Message{Key: "notice/1", Conversation: chatA, State: orchestrator.Sent, ID: 12})
	owes := save(orchestrator.Message{Key: "notice/2", Conversation: chatA, State: orchestrator.Unknown,
		Content: []byte{}})
	late := orchestrator.Message{Key: first.Key, State: orchestrator.Pending}
	same(t, "a known key", get[bool](t)(db.AddMessage(ctx, late)), false)
	same(t, "behind a known key", get[orchestrator.Message](t)(db.FindMessage(ctx, first.Key)), first)
	added := orchestrator.Message{Key: "notice/3", Conversation: chatA, State: orchestrator.Pending,
		Content: []byte("new")}
	same(t, "a new key", get[bool](t)(db.AddMessage(ctx, added)), true)

	same(t, "of the turn", get[[]orchestrator.Message](t)(db.MessagesOf(ctx, "a")),
		[]orchestrator.Message{first, second})
	same(t, "of no turn", get[[]orchestrator.Message](t)(db.MessagesOf(ctx, "")), []orchestrator.Message(nil))
	same(t, "owed", get[[]orchestrator.Message](t)(db.OwedMessages(ctx)), []orchestrator.Message{owes, added})
	same(t, "at its number", get[orchestrator.Message](t)(db.MessageAt(ctx, chatB, 12)), first)
	same(t, "at the same number elsewhere", get[orchestrator.Message](t)(db.MessageAt(ctx, chatA, 12)), done)
	same(t, "at no number", get[orchestrator.Message](t)(db.MessageAt(ctx, chatA, 0)), orchestrator.Message{})
	if err := db.SaveMessage(ctx, orchestrator.Message{Key: "notice/1", State: "posted"}); err == nil {
		t.Error("a message was stored with an unknown state")
	}
}

func TestCards(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	load := func(turn string) string {
		content := get[[]byte](t)(db.LoadCard(ctx, turn))
		if content == nil {
			return "(none)"
		}
		return string(content)
	}
	same(t, "content of a card not known", load("t1"), "(none)")
	must(t, db.SaveCard(ctx, "t1", nil))
	same(t, "empty content", load("t1"), "")
	must(t, db.SaveCard(ctx, "t1", []byte("final")))
	same(t, "content", load("t1"), "final")
}

// TestMigrationOfMessages tests that messages of an older version, sent or waiting, are known after the migration.
func TestMigrationOfMessages(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "ductor.db")
	s := get[sqlite.Schema](t)(schema())
	before := fstest.MapFS{}
	for _, name := range get[[]string](t)(fs.Glob(s.Migrations, "*.sql")) {
		if name < "0016" {
			before[name] = &fstest.MapFile{Data: get[[]byte](t)(fs.ReadFile(s.Migrations, name))}
		}
	}
	s.Migrations = before
	file := get[*sqlite.DB](t)(sqlite.Open(ctx, path, s, sqlite.Options{}))
	must(t, file.Write(ctx, func(tx *sqlite.Tx) error {
		for _, query := range []string{
			`INSERT INTO turns (id, chat, topic, person, prompt, message, state, agent, model, queued) VALUES
				('t', -100123, 42, 1, 'go', 9, 'running', 'claude', '', 1),
				('w', -100123, 42, 1, 'wait', 10, 'queued', '', '', 2)`,
			`INSERT INTO notices (chat, topic, content, state, message, moved) VALUES
				(7, 0, CAST('late' AS BLOB), 'pending', 0, 5), (7, 0, CAST('maybe' AS BLOB), 'sending', 0, 6),
				(7, 0, CAST('there' AS BLOB), 'sent', 3, 7)`,
			`INSERT INTO card_parts (turn, part, state, message, saved) VALUES ('t', 0, 'sent', 11, 8),
				('t', 1, 'unknown', -8589934597, 8),
				('t', 2, 'failed', 0, 8), ('t', 1048576, 'sent', 12, 8), ('t', 1048577, 'pending', 0, 8),
				('queued:w', 0, 'sent', 13, 8)`,
			`INSERT INTO asks (id, nonce, turn, session, chat, topic, agent, dir, digest, content, session_rule,
				rule, approvers,
				asked, expires, state, message, sent) SELECT value ->> 0, 'n', 't', 's', -100123, 42, 'claude', '/',
				value ->> 0, '{}', '', '', '[]',
				1, 2, 'open', value ->> 1, value ->> 2
				FROM json_each('[["new", 0, "pending"], ["there", 14, "sent"], ["leaves", 0, "sending"],
				["lost", 0, "unknown"], ["noticed", 15, "unknown"], ["nothing", -1, "unknown"]]')`,
		} {
			if _, err := tx.Exec(query); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, file.Close())

	db := openAt(t, path)
	same(t, "owed", get[[]orchestrator.Message](t)(db.OwedMessages(ctx)), []orchestrator.Message{
		{Key: "notice/1", Conversation: chatA, State: orchestrator.Pending, Content: []byte("late")},
		{Key: "notice/2", Conversation: chatA, State: orchestrator.Sending, Content: []byte("maybe")},
	})
	of := func(key string, state orchestrator.SendState, id int, mark int64) orchestrator.Message {
		return orchestrator.Message{Key: key, Turn: "t", Conversation: chatB, State: state, ID: id, Mark: mark}
	}
	same(t, "of the turn", get[[]orchestrator.Message](t)(db.MessagesOf(ctx, "t")), []orchestrator.Message{
		of("approval/there", orchestrator.Sent, 14, 0), of("approval/leaves", orchestrator.Unknown, 0, 0),
		of("approval/lost", orchestrator.Unknown, 0, 0), of("approval/noticed", orchestrator.Unknown, 0, 0),
		of("approval/nothing", orchestrator.Unknown, 0, 0),
		of("approval/noticed/notice", orchestrator.Sent, 15, 0),
		of("approval/nothing/notice", orchestrator.Unknown, 0, 0),
		of("card/t/0", orchestrator.Sent, 11, 0), of("card/t/1", orchestrator.Unknown, 0, 2<<32+5),
		of("card/t/2", orchestrator.Removed, 0, 0), of("card/t/notice", orchestrator.Sent, 12, 0),
		of("card/t/file", orchestrator.Pending, 0, 0),
	})
	queued := of("queued/w", orchestrator.Sent, 13, 0)
	queued.Turn = "w"
	same(t, "of the waiting turn", get[[]orchestrator.Message](t)(db.MessagesOf(ctx, "w")),
		[]orchestrator.Message{queued})
}
