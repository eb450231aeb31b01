package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const messageColumns = `key, turn, chat, topic, state, message, mark, content`

// SaveMessage waits for the disk if the message has Content, because ductor still has to send this content. Otherwise,
// if the state is Sending, SaveMessage does not wait for the disk, because the user waits for the message. In all other
// cases, it uses a shared transaction.
func (db *DB) SaveMessage(ctx context.Context, m orchestrator.Message) error {
	write := db.write
	switch {
	case m.Content != nil:
	case m.State == orchestrator.Sending: // after a power failure, the message may be sent twice
		write = db.writeLazily
	default:
		write = db.writeShared
	}
	now := millis(db.now())
	return wrap("save message "+m.Key, write(ctx, func(t tx) error { return t.saveMessage(m, now) }))
}

func (db *DB) AddMessage(ctx context.Context, m orchestrator.Message) (added bool, err error) {
	now := millis(db.now())
	err = db.write(ctx, func(t tx) error {
		n, err := t.insert("messages", messageColumns+", moved", "ON CONFLICT (key) DO NOTHING",
			append(messageFields(&m), now)...)
		added = n > 0
		return err
	})
	return added, wrap("add message "+m.Key, err)
}

func (db *DB) CommitMessages(ctx context.Context) error {
	return wrap("commit messages", db.file.CommitShared(ctx))
}

func messageFields(m *orchestrator.Message) []any {
	return []any{&m.Key, &m.Turn, &m.Conversation.Chat, &m.Conversation.Topic, &m.State, &m.ID, &m.Mark, &m.Content}
}

func (t tx) saveMessage(m orchestrator.Message, now int64) error {
	// Most calls to Telegram store a message, so avoid upsert, which builds its SQL each time.
	_, err := t.Exec(`INSERT INTO messages (`+messageColumns+`, moved) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET turn = excluded.turn, chat = excluded.chat, topic = excluded.topic,
		state = excluded.state,
		message = excluded.message, mark = excluded.mark, content = excluded.content,
		moved = excluded.moved`, append(messageFields(&m), now)...)
	return err
}

func (db *DB) FindMessage(ctx context.Context, key string) (orchestrator.Message, error) {
	return db.findMessage(ctx, "load message "+key, `SELECT `+messageColumns+` FROM messages WHERE key = ?`, key)
}

// MessageAt implements orchestrator.MessageStore. If several stored messages have this Telegram ID, it returns the
// newest.
func (db *DB) MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error) {
	return db.findMessage(ctx, fmt.Sprintf("find message %d", id), `SELECT `+messageColumns+` FROM messages
		WHERE chat = ? AND topic = ? AND message = ? AND message > 0 ORDER BY seq DESC LIMIT 1`, in.Chat, in.Topic, id)
}

func (db *DB) findMessage(ctx context.Context, op, query string, args ...any) (orchestrator.Message, error) {
	m, err := sqlite.One(ctx, db.file, scan(messageFields), query, args...)
	m, err = mapNoRows(m, err, nil)
	return m, wrap(op, err)
}

func (db *DB) MessagesOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Message, error) {
	all, err := sqlite.Many(ctx, db.file, scan(messageFields),
		`SELECT `+messageColumns+` FROM messages WHERE turn = ? AND turn <> '' ORDER BY seq`, string(turn))
	return all, wrap(fmt.Sprintf("load messages of turn %s", turn), err)
}

func (db *DB) OwedMessages(ctx context.Context) ([]orchestrator.Message, error) {
	all, err := sqlite.Many(ctx, db.file, scan(messageFields),
		`SELECT `+messageColumns+` FROM messages WHERE content IS NOT NULL ORDER BY seq`)
	return all, wrap("list owed messages", err)
}

const rateColumns = `chat, every, burst, until, told`

// SendRates returns the rates that SaveSendRate stored.
func (db *DB) SendRates(ctx context.Context) ([]orchestrator.SendRate, error) {
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (r orchestrator.SendRate, err error) {
		var until, told int64
		err = row.Scan(&r.Chat, &r.Every, &r.Burst, &until, &told)
		r.Until, r.Told = time.UnixMilli(until), time.UnixMilli(told)
		return r, err
	}, `SELECT `+rateColumns+` FROM rates ORDER BY chat`)
	return all, wrap("list the rates of chats", err)
}

// SaveSendRate stores the rate at which ductor may send to a chat, and replaces the previous rate.
func (db *DB) SaveSendRate(ctx context.Context, r orchestrator.SendRate) error {
	return wrap("save the rate of a chat", db.write(ctx, func(t tx) error {
		return t.upsert("rates", "chat", rateColumns, r.Chat, int64(r.Every), r.Burst, millis(r.Until), millis(r.Told))
	}))
}

func (db *DB) Topics(ctx context.Context) (map[orchestrator.ConversationID]string, error) {
	all := map[orchestrator.ConversationID]string{}
	_, err := sqlite.Many(ctx, db.file, func(r sqlite.Row) (in orchestrator.ConversationID, err error) {
		var shows string
		err = r.Scan(&in.Chat, &in.Topic, &shows)
		all[in] = shows
		return in, err
	}, `SELECT chat, topic, shows FROM topics`)
	return all, wrap("list topics", err)
}

func (db *DB) SaveTopic(ctx context.Context, in orchestrator.ConversationID, shows string) error {
	if shows == "" {
		return db.exec(ctx, "delete a topic", db.write,
			`DELETE FROM topics WHERE chat = ? AND topic = ?`, in.Chat, in.Topic)
	}
	return wrap("save a topic", db.write(ctx, func(t tx) error {
		return t.upsert("topics", "chat, topic", `chat, topic, shows`, in.Chat, in.Topic, shows)
	}))
}

// SaveCard does not wait for the disk. If name is not the ID of a turn, Prune deletes the content when it is old.
func (db *DB) SaveCard(ctx context.Context, name string, content []byte) error {
	return wrap("save card of turn "+name, db.writeLazily(ctx, func(t tx) error {
		_, err := t.ExecRow(name, `INSERT INTO cards (turn, content, saved) VALUES (?, ?, ?)
			ON CONFLICT (turn) DO UPDATE SET content = excluded.content, saved = excluded.saved`,
			name, blob(content), millis(db.now()))
		return err
	}))
}

// LoadCard caches short content, and also that there is no content, because ductor calls it for every message of a
// user. Callers share the content and must not change it.
func (db *DB) LoadCard(ctx context.Context, name string) ([]byte, error) {
	content, err := sqlite.OneCached(ctx, db.file, sqlite.Source{Name: name, Tables: []string{"cards"}},
		sqlite.Value[[]byte], `SELECT (SELECT content FROM cards WHERE turn = ?)`, name)
	return content, wrap("load card of turn "+name, err)
}

const alertColumns = `key, kind, since, over`

func alertFields(a *orchestrator.Alert) []any {
	return []any{&a.Key, &a.Kind, timeColumn{&a.Since}, &a.Over}
}

func (db *DB) Alerts(ctx context.Context) ([]orchestrator.Alert, error) {
	all, err := sqlite.Many(ctx, db.file, scan(alertFields), `SELECT `+alertColumns+` FROM alerts ORDER BY key`)
	return all, wrap("list alerts", err)
}

func (db *DB) BeginAlert(ctx context.Context, a orchestrator.Alert, notice *orchestrator.Message) error {
	return wrap("begin alert "+a.Key, db.write(ctx, func(t tx) error {
		_, err := t.insert("alerts", alertColumns, "", alertFields(&a)...)
		return errors.Join(err, t.saveNotice(notice, db.now()))
	}))
}

func (db *DB) EndAlert(ctx context.Context, key string, notice *orchestrator.Message) error {
	return wrap("end alert "+key, db.write(ctx, func(t tx) error {
		_, err := t.Exec(`DELETE FROM alerts WHERE key = ?`, key)
		return errors.Join(err, t.saveNotice(notice, db.now()))
	}))
}

func (t tx) saveNotice(m *orchestrator.Message, now time.Time) error {
	if m == nil {
		return nil
	}
	return t.saveMessage(*m, millis(now))
}
