package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// The agents' own ids ride along as JSON, so that a session is read in one statement and thus one snapshot.
const sessionColumns = `id, chat, topic, title, dir, created, used, messages, cost_usd, tokens,
	(SELECT json_group_array(json_array(agent, sandbox, native)) FROM session_natives WHERE session = sessions.id)`

// CreateSession stores s and makes it the current one of its conversation. It is not waited for: the turn
// that uses it is, and so is the answer that tells of it.
func (db *DB) CreateSession(ctx context.Context, s orchestrator.Session) error {
	err := db.write.doSoon(ctx, func(t *tx) error {
		if err := t.insertSession(s); err != nil {
			return err
		}
		_, err := t.exec(`INSERT INTO conversations (chat, topic, session) VALUES (?, ?, ?)
			ON CONFLICT (chat, topic) DO UPDATE SET session = excluded.session`,
			s.Conversation.Chat, s.Conversation.Topic, string(s.ID))
		return err
	})
	return wrap(fmt.Sprintf("create session %s", s.ID), err)
}

func (t *tx) insertSession(s orchestrator.Session) error {
	_, err := t.exec(`INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(s.ID), s.Conversation.Chat, s.Conversation.Topic, s.Title, s.Dir,
		millis(s.Created), millis(s.Used), s.Messages, s.CostUSD, s.Tokens)
	if err != nil {
		return err
	}
	for of, native := range s.Native {
		if err := t.setNative(s.ID, of, native); err != nil {
			return err
		}
	}
	return nil
}

// Session returns ErrNoSession for an id that is not there. Native is never nil.
func (db *DB) Session(ctx context.Context, id orchestrator.SessionID) (orchestrator.Session, error) {
	s, err := one(ctx, db.read, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, string(id))
	if errors.Is(err, sql.ErrNoRows) {
		err = orchestrator.ErrNoSession
	}
	return s, wrap(fmt.Sprintf("load session %s", id), err)
}

// Sessions lists at most limit of a conversation's sessions, last used first; one that was not used yet
// counts from when it was created.
func (db *DB) Sessions(ctx context.Context, id orchestrator.ConversationID, limit int) ([]orchestrator.Session, error) {
	all, err := many(ctx, db.read, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE chat = ? AND topic = ?
		ORDER BY max(used, created) DESC, seq DESC LIMIT ?`, id.Chat, id.Topic, atMost(limit))
	return all, wrap(fmt.Sprintf("list sessions of %s", id.Key()), err)
}

// SetNative records the own id of an agent in a place for a session; an empty id forgets it. ErrNoSession for a session that
// is not there. It is not waited for: the end of the turn is.
func (db *DB) SetNative(ctx context.Context, id orchestrator.SessionID, of orchestrator.Seat, native cli.AgentSessionID) error {
	err := db.write.doSoon(ctx, func(t *tx) error {
		known, err := t.exists(`SELECT 1 FROM sessions WHERE id = ?`, string(id))
		if err == nil && !known {
			err = orchestrator.ErrNoSession
		}
		if err != nil {
			return err
		}
		return t.setNative(id, of, native)
	})
	return wrap(fmt.Sprintf("set %s id of session %s", of.Agent, id), err)
}

// TouchSession records that a session was used, so that the reset rules count from then.
func (db *DB) TouchSession(ctx context.Context, id orchestrator.SessionID, at time.Time) error {
	err := db.write.do(ctx, func(t *tx) error {
		known, err := t.exists(`SELECT 1 FROM sessions WHERE id = ?`, string(id))
		if err == nil && !known {
			err = orchestrator.ErrNoSession
		}
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE sessions SET used = ? WHERE id = ?`, millis(at), string(id))
		return err
	})
	return wrap(fmt.Sprintf("touch session %s", id), err)
}

func (t *tx) setNative(id orchestrator.SessionID, of orchestrator.Seat, native cli.AgentSessionID) error {
	if native == "" {
		_, err := t.exec(`DELETE FROM session_natives WHERE session = ? AND agent = ? AND sandbox = ?`,
			string(id), string(of.Agent), string(of.Sandbox))
		return err
	}
	_, err := t.exec(`INSERT INTO session_natives (session, agent, sandbox, native) VALUES (?, ?, ?, ?)
		ON CONFLICT (session, agent, sandbox) DO UPDATE SET native = excluded.native`,
		string(id), string(of.Agent), string(of.Sandbox), string(native))
	return err
}

func scanSession(row scanner) (orchestrator.Session, error) {
	s := orchestrator.Session{Native: map[orchestrator.Seat]cli.AgentSessionID{}}
	var created, used int64
	var natives string
	err := row.Scan(&s.ID, &s.Conversation.Chat, &s.Conversation.Topic, &s.Title, &s.Dir,
		&created, &used, &s.Messages, &s.CostUSD, &s.Tokens, &natives)
	if err != nil {
		return orchestrator.Session{}, err
	}
	s.Created, s.Used = instant(created), instant(used)
	var rows [][3]string
	err = decode(natives, &rows)
	for _, r := range rows {
		s.Native[orchestrator.Seat{Agent: cli.Agent(r[0]), Sandbox: cli.Sandbox(r[1])}] = cli.AgentSessionID(r[2])
	}
	return s, err
}
