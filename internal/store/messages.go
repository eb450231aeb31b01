package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const messageColumns = `key, turn, chat, topic, state, message, mark, content`

// SaveMessage stores a message in place of the one with its key; see orchestrator.Journal.
func (db *DB) SaveMessage(ctx context.Context, m orchestrator.Message) error {
	write := db.write
	switch {
	case m.Content != nil:
	case m.State == orchestrator.Sending: // a user waits; a power failure in this very moment may show it twice
		write = db.writeLazily
	default:
		write = db.share
	}
	now := millis(db.now())
	return wrap("save message "+m.Key, write(ctx, func(t tx) error { return t.saveMessage(m, now) }))
}

func (t tx) saveMessage(m orchestrator.Message, now int64) error {
	_, err := t.Exec(`INSERT INTO messages (`+messageColumns+`, moved) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET turn = excluded.turn, chat = excluded.chat, topic = excluded.topic, state = excluded.state,
		message = excluded.message, mark = excluded.mark, content = excluded.content, moved = excluded.moved`,
		m.Key, string(m.Turn), m.Conversation.Chat, m.Conversation.Topic, string(m.State), m.ID, m.Mark, m.Content, now)
	return err
}

// FindMessage finds a message by its key.
func (db *DB) FindMessage(ctx context.Context, key string) (orchestrator.Message, error) {
	return db.message(ctx, "load message "+key, `SELECT `+messageColumns+` FROM messages WHERE key = ?`, key)
}

// MessageAt finds the message with a number in a conversation, the newest where several had it.
func (db *DB) MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error) {
	return db.message(ctx, fmt.Sprintf("find message %d", id), `SELECT `+messageColumns+` FROM messages
		WHERE chat = ? AND topic = ? AND message = ? AND message > 0 ORDER BY seq DESC LIMIT 1`, in.Chat, in.Topic, id)
}

func (db *DB) message(ctx context.Context, op, query string, args ...any) (orchestrator.Message, error) {
	m, err := sqlite.One(ctx, db.file, scanMessage, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return orchestrator.Message{}, nil
	}
	return m, wrap(op, err)
}

// MessagesOf lists the messages of a turn, in the order in which they were stored first.
func (db *DB) MessagesOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Message, error) {
	all, err := sqlite.Many(ctx, db.file, scanMessage,
		`SELECT `+messageColumns+` FROM messages WHERE turn = ? AND turn <> '' ORDER BY seq`, string(turn))
	return all, wrap(fmt.Sprintf("load messages of turn %s", turn), err)
}

// OwedMessages lists the messages with content, in the order in which they were stored first.
func (db *DB) OwedMessages(ctx context.Context) ([]orchestrator.Message, error) {
	all, err := sqlite.Many(ctx, db.file, scanMessage, `SELECT `+messageColumns+` FROM messages WHERE content IS NOT NULL ORDER BY seq`)
	return all, wrap("list owed messages", err)
}

func scanMessage(row sqlite.Row) (m orchestrator.Message, err error) {
	err = row.Scan(&m.Key, &m.Turn, &m.Conversation.Chat, &m.Conversation.Topic, &m.State, &m.ID, &m.Mark, &m.Content)
	return m, err
}

// SendRates lists what SaveSendRate stored.
func (db *DB) SendRates(ctx context.Context) ([]orchestrator.SendRate, error) {
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (r orchestrator.SendRate, err error) {
		var until int64
		err = row.Scan(&r.Chat, &r.Every, &r.Burst, &until)
		r.Until = time.UnixMilli(until)
		return r, err
	}, `SELECT chat, every, burst, until FROM rates ORDER BY chat`)
	return all, wrap("list the rates of chats", err)
}

// SaveSendRate stores the rate of a chat in place of the one before.
func (db *DB) SaveSendRate(ctx context.Context, r orchestrator.SendRate) error {
	return wrap("save the rate of a chat", db.write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO rates (chat, every, burst, until) VALUES (?, ?, ?, ?)
			ON CONFLICT (chat) DO UPDATE SET every = excluded.every, burst = excluded.burst, until = excluded.until`,
			r.Chat, int64(r.Every), r.Burst, millis(r.Until))
		return err
	}))
}

// Topics are the topics that SaveTopic stored.
func (db *DB) Topics(ctx context.Context) (map[orchestrator.ConversationID]string, error) {
	type row struct {
		in    orchestrator.ConversationID
		shows string
	}
	rows, err := sqlite.Many(ctx, db.file, func(r sqlite.Row) (t row, err error) {
		err = r.Scan(&t.in.Chat, &t.in.Topic, &t.shows)
		return t, err
	}, `SELECT chat, topic, shows FROM topics`)
	all := map[orchestrator.ConversationID]string{}
	for _, r := range rows {
		all[r.in] = r.shows
	}
	return all, wrap("list topics", err)
}

// SaveTopic stores what the icon of a topic shows; nothing forgets the topic.
func (db *DB) SaveTopic(ctx context.Context, in orchestrator.ConversationID, shows string) error {
	return wrap("save a topic", db.write(ctx, func(t tx) error {
		if shows == "" {
			_, err := t.Exec(`DELETE FROM topics WHERE chat = ? AND topic = ?`, in.Chat, in.Topic)
			return err
		}
		_, err := t.Exec(`INSERT INTO topics (chat, topic, shows) VALUES (?, ?, ?) ON CONFLICT (chat, topic) DO UPDATE SET shows = excluded.shows`,
			in.Chat, in.Topic, shows)
		return err
	}))
}

// SaveCard stores the content of a turn's card, in place of what was stored before. It is lazy. What is kept under a name that is
// no turn's, such as a draft, is forgotten by its age; see Prune.
func (db *DB) SaveCard(ctx context.Context, turn string, content []byte) error {
	now := millis(db.now())
	err := db.writeLazily(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO cards (turn, content, saved) VALUES (?, ?, ?)
			ON CONFLICT (turn) DO UPDATE SET content = excluded.content, saved = excluded.saved`, turn, blob(content), now)
		return err
	})
	return wrap("save card of turn "+turn, err)
}

// LoadCard returns what SaveCard stored; nil for what it never stored.
func (db *DB) LoadCard(ctx context.Context, turn string) ([]byte, error) {
	content, err := sqlite.One(ctx, db.file, sqlite.Value[[]byte], `SELECT content FROM cards WHERE turn = ?`, turn)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return content, wrap("load card of turn "+turn, err)
}

// Alerts lists the troubles that last; see alerts.Store.
func (db *DB) Alerts(ctx context.Context) ([]orchestrator.Alert, error) {
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (a orchestrator.Alert, err error) {
		var since int64
		err = row.Scan(&a.Key, &a.Kind, &since, &a.Over)
		a.Since = instant(since)
		return a, err
	}, `SELECT key, kind, since, over FROM alerts ORDER BY key`)
	return all, wrap("list alerts", err)
}

// BeginAlert stores a trouble and the notice that tells of it; see alerts.Store.
func (db *DB) BeginAlert(ctx context.Context, a orchestrator.Alert, notice *orchestrator.Message) error {
	return wrap("begin alert "+a.Key, db.write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO alerts (key, kind, since, over) VALUES (?, ?, ?, ?)`, a.Key, a.Kind, millis(a.Since), a.Over)
		return errors.Join(err, t.saveNotice(notice, db.now()))
	}))
}

// EndAlert forgets a trouble and stores the notice that it is over; see alerts.Store.
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
