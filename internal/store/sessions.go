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

// The agents' own ids ride along as JSON, so that a session is read in one statement and thus one snapshot.
const sessionColumns = `id, chat, topic, title, dir, created, used, messages, cost_usd, tokens,
	(SELECT json_group_array(json_array(agent, sandbox, id)) FROM agent_sessions WHERE session = sessions.id)`

// CreateSession stores s and makes it the current one of its conversation. It is lazy: the start of the turn
// that uses it is not, and neither is the notice about it.
func (db *DB) CreateSession(ctx context.Context, s orchestrator.Session) error {
	err := db.share(ctx, func(t tx) error {
		if err := t.insertSession(s); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO conversations (chat, topic, session) VALUES (?, ?, ?)
			ON CONFLICT (chat, topic) DO UPDATE SET session = excluded.session`,
			s.Conversation.Chat, s.Conversation.Topic, string(s.ID))
		return err
	})
	return wrap(fmt.Sprintf("create session %s", s.ID), err)
}

func (t tx) insertSession(s orchestrator.Session) error {
	_, err := t.Exec(`INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(s.ID), s.Conversation.Chat, s.Conversation.Topic, s.Title, s.Dir,
		millis(s.Created), millis(s.Used), s.Messages, s.CostUSD, s.Tokens)
	if err != nil {
		return err
	}
	for of, id := range s.AgentSessions {
		if err := t.setAgentSession(s.ID, of, id); err != nil {
			return err
		}
	}
	return nil
}

// Session returns ErrNoSession for an id that is not there. AgentSessions is never nil.
func (db *DB) Session(ctx context.Context, id orchestrator.SessionID) (orchestrator.Session, error) {
	s, err := sqlite.One(ctx, db.file, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, string(id))
	if errors.Is(err, sql.ErrNoRows) {
		err = orchestrator.ErrNoSession
	}
	return s, wrap(fmt.Sprintf("load session %s", id), err)
}

// Sessions lists at most limit of a conversation's sessions, last used first; one that was not used yet
// counts from when it was created.
func (db *DB) Sessions(ctx context.Context, id orchestrator.ConversationID, limit int) ([]orchestrator.Session, error) {
	all, err := sqlite.Many(ctx, db.file, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE chat = ? AND topic = ?
		ORDER BY max(used, created) DESC, seq DESC LIMIT ?`, id.Chat, id.Topic, atMost(limit))
	return all, wrap(fmt.Sprintf("list sessions of %s", id.Key()), err)
}

// SetAgentSession records the own id of an agent in an environment for a session; an empty id forgets it. ErrNoSession for a
// session that is not there. It is lazy: the end of the turn is not.
func (db *DB) SetAgentSession(ctx context.Context, id orchestrator.SessionID, of orchestrator.AgentEnv, own cli.AgentSessionID) error {
	err := db.share(ctx, func(t tx) error {
		known, err := t.Exists(`SELECT 1 FROM sessions WHERE id = ?`, string(id))
		if err == nil && !known {
			err = orchestrator.ErrNoSession
		}
		if err != nil {
			return err
		}
		return t.setAgentSession(id, of, own)
	})
	return wrap(fmt.Sprintf("set %s id of session %s", of.Agent, id), err)
}

// TouchSession records that a session was used, so that the reset rules count from then.
func (db *DB) TouchSession(ctx context.Context, id orchestrator.SessionID, at time.Time) error {
	err := db.write(ctx, func(t tx) error {
		known, err := t.Exists(`SELECT 1 FROM sessions WHERE id = ?`, string(id))
		if err == nil && !known {
			err = orchestrator.ErrNoSession
		}
		if err != nil {
			return err
		}
		_, err = t.Exec(`UPDATE sessions SET used = ? WHERE id = ?`, millis(at), string(id))
		return err
	})
	return wrap(fmt.Sprintf("touch session %s", id), err)
}

func (t tx) setAgentSession(id orchestrator.SessionID, of orchestrator.AgentEnv, own cli.AgentSessionID) error {
	if own == "" {
		_, err := t.Exec(`DELETE FROM agent_sessions WHERE session = ? AND agent = ? AND sandbox = ?`,
			string(id), string(of.Agent), string(of.Sandbox))
		return err
	}
	_, err := t.Exec(`INSERT INTO agent_sessions (session, agent, sandbox, id) VALUES (?, ?, ?, ?)
		ON CONFLICT (session, agent, sandbox) DO UPDATE SET id = excluded.id`,
		string(id), string(of.Agent), string(of.Sandbox), string(own))
	return err
}

func scanSession(row sqlite.Row) (orchestrator.Session, error) {
	s := orchestrator.Session{AgentSessions: map[orchestrator.AgentEnv]cli.AgentSessionID{}}
	var created, used int64
	var own string
	err := row.Scan(&s.ID, &s.Conversation.Chat, &s.Conversation.Topic, &s.Title, &s.Dir,
		&created, &used, &s.Messages, &s.CostUSD, &s.Tokens, &own)
	if err != nil {
		return orchestrator.Session{}, err
	}
	s.Created, s.Used = instant(created), instant(used)
	var rows [][3]string
	err = decode(own, &rows)
	for _, r := range rows {
		s.AgentSessions[orchestrator.AgentEnv{Agent: cli.Agent(r[0]), Sandbox: cli.Sandbox(r[1])}] = cli.AgentSessionID(r[2])
	}
	return s, err
}

// OwnSession is the session of a name in a conversation; empty for none.
func (db *DB) OwnSession(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.SessionID, error) {
	id, err := sqlite.One(ctx, db.file, sqlite.Value[orchestrator.SessionID],
		`SELECT session FROM own_sessions WHERE chat = ? AND topic = ? AND name = ?`, in.Chat, in.Topic, name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, wrap(fmt.Sprintf("find session %q", name), err)
}

// CreateOwnSession stores s as the one of its name, and leaves the conversation's current session alone. It is
// lazy: the start of the turn that uses it is not.
func (db *DB) CreateOwnSession(ctx context.Context, name string, s orchestrator.Session) error {
	err := db.share(ctx, func(t tx) error {
		if err := t.insertSession(s); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO own_sessions (chat, topic, name, session) VALUES (?, ?, ?, ?)
			ON CONFLICT (chat, topic, name) DO UPDATE SET session = excluded.session`,
			s.Conversation.Chat, s.Conversation.Topic, name, string(s.ID))
		return err
	})
	return wrap(fmt.Sprintf("create session %s", s.ID), err)
}
