package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// The last column is a JSON array of the agents' sessions that belong to the session. One statement can then read the
// whole session from a single snapshot.
const sessionColumns = `id, chat, topic, person, title, dir, created, used, messages, cost_usd, tokens, pinned,
	archived, (SELECT coalesce(max(number), 0) FROM turns WHERE session = sessions.id),
	(SELECT json_group_array(json_object('agent', agent, 'account', account, 'sandbox', sandbox, 'lane', lane, 'id', id,
	'told', told, 'upto', upto, 'offered', offered, 'terminal', terminal))
	FROM agent_sessions WHERE session = sessions.id)`

// CreateSession writes to a shared transaction; see sqlite.DB.WriteShared. The transaction is committed when the
// session's first turn starts, or earlier.
func (db *DB) CreateSession(ctx context.Context, s orchestrator.Session) error {
	err := db.writeShared(ctx, func(t tx) error {
		if err := t.insertSession(s); err != nil {
			return err
		}
		_, err := t.ExecRow(string(s.Conversation.Key()),
			`INSERT INTO conversations (chat, topic, session) VALUES (?, ?, ?)
			ON CONFLICT (chat, topic) DO UPDATE SET session = excluded.session`,
			s.Conversation.Chat, s.Conversation.Topic, string(s.ID))
		return err
	})
	return wrap(fmt.Sprintf("create session %s", s.ID), err)
}

func (t tx) insertSession(s orchestrator.Session) error {
	_, err := t.ExecRow(string(s.ID),
		`INSERT INTO sessions (id, chat, topic, person, title, dir, created, used, messages, cost_usd, tokens)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(s.ID), s.Conversation.Chat, s.Conversation.Topic, int64(s.Person), s.Title, s.Dir,
		millis(s.Created), millis(s.Used), s.Totals.Messages, s.Totals.CostUSD, s.Totals.Tokens)
	if err != nil {
		return err
	}
	for of, has := range s.AgentSessions {
		if err := t.setAgentSession(s.ID, of, has); err != nil {
			return err
		}
	}
	return nil
}

// Session returns a session. Its AgentSessions is never nil.
func (db *DB) Session(ctx context.Context, id orchestrator.SessionID) (orchestrator.Session, error) {
	s, err := sqlite.OneCached(ctx, db.file, sessionSource(id), scanSession,
		`SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, string(id))
	s, err = mapNoRows(s, err, orchestrator.ErrNoSession)
	s.AgentSessions = maps.Clone(s.AgentSessions)
	return s, wrap(fmt.Sprintf("load session %s", id), err)
}

func sessionSource(id orchestrator.SessionID) sqlite.Source {
	return sqlite.Source{Name: string(id), Tables: []string{"sessions", "agent_sessions"}}
}

// SetAgentSession uses a shared transaction; see sqlite.DB.WriteShared. After a power failure, ductor may send history
// entries to the agent a second time. SetAgentSession returns ErrNoSession for an unknown session.
func (db *DB) SetAgentSession(
	ctx context.Context, id orchestrator.SessionID, of orchestrator.AgentEnv, own orchestrator.AgentSession,
) error {
	err := db.writeShared(ctx, func(t tx) error {
		there, err := t.Exists(`SELECT 1 FROM sessions WHERE id = ?`, string(id))
		if err == nil && !there {
			err = orchestrator.ErrNoSession
		}
		if err != nil {
			return err
		}
		return t.setAgentSession(id, of, own)
	})
	return wrap(fmt.Sprintf("set %s id of session %s", of.Agent, id), err)
}

// SaveBegun stores the ID of an agent session that ductor started; see Knows. It uses a shared transaction.
func (db *DB) SaveBegun(ctx context.Context, own cli.AgentSessionID) error {
	return db.exec(ctx, fmt.Sprintf("store agent session %s", own), db.writeShared,
		`INSERT OR IGNORE INTO begun_sessions (id) VALUES (?)`, string(own))
}

func (db *DB) Knows(ctx context.Context, own cli.AgentSessionID) (bool, error) {
	n, err := sqlite.One(ctx, db.file, sqlite.Value[int], `SELECT EXISTS (SELECT 1 FROM begun_sessions WHERE id = ?1
		UNION ALL SELECT 1 FROM agent_sessions WHERE id = ?1)`, string(own))
	return n > 0, wrap(fmt.Sprintf("find agent session %s", own), err)
}

// Spent returns the latest total cost that an agent has reported for its session, or nil if there is none; see
// cli.Fill. If ductor was killed during a turn, the total may lack the cost of this turn. If the agent later reports a
// smaller total, the agent has begun to count again in a new session.
func (db *DB) Spent(ctx context.Context, own cli.AgentSessionID) (*float64, error) {
	usd, err := sqlite.One(ctx, db.file, sqlite.Value[sql.NullFloat64], `SELECT (SELECT
		outcome ->> '$.fill.spent_usd' AS usd FROM agent_sessions a JOIN turns t ON t.id = a.told
			OR t.session = a.session AND t.agent = a.agent AND t.account = a.account AND t.sandbox = a.sandbox
			AND (t.kind = '') = (a.lane = '')
		WHERE a.id = ? AND usd IS NOT NULL ORDER BY t.number DESC LIMIT 1)`, string(own))
	if err != nil || !usd.Valid {
		return nil, wrap(fmt.Sprintf("load the cost of agent session %s", own), err)
	}
	return &usd.Float64, nil
}

func (db *DB) TouchSession(ctx context.Context, id orchestrator.SessionID, at time.Time) error {
	return wrap(fmt.Sprintf("touch session %s", id), db.write(ctx, func(t tx) error {
		return t.execExisting(orchestrator.ErrNoSession,
			`UPDATE sessions SET used = max(used, ?), archived = 0 WHERE id = ?`, millis(at), string(id))
	}))
}

func (db *DB) TitleSession(ctx context.Context, id orchestrator.SessionID, from, title string) error {
	return wrap(fmt.Sprintf("title session %s", id), db.write(ctx, func(t tx) error {
		_, err := t.ExecRow(string(id), `UPDATE sessions SET title = ? WHERE id = ? AND title = ?`,
			title, string(id), from)
		return err
	}))
}

func (t tx) setAgentSession(
	id orchestrator.SessionID, of orchestrator.AgentEnv, own orchestrator.AgentSession,
) error {
	if own.ID == "" {
		_, err := t.ExecRow(string(id),
			`DELETE FROM agent_sessions WHERE session = ? AND agent = ? AND account = ? AND sandbox = ? AND lane = ?`,
			string(id), string(of.Agent), string(of.Account), string(of.Sandbox), string(of.Lane))
		return err
	}
	const columns = `session, agent, account, sandbox, lane, id, told, upto, offered, terminal`
	_, err := t.ExecRow(string(id), `INSERT INTO agent_sessions (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) `+
		onConflictReplace("session, agent, account, sandbox, lane", columns),
		string(id), string(of.Agent), string(of.Account), string(of.Sandbox), string(of.Lane), string(own.ID),
		string(own.Told), own.UpTo, own.Offered, own.Terminal)
	return err
}

func scanSession(row sqlite.Row) (orchestrator.Session, error) { return scanSessionAnd(row) }

func scanSessionAnd(row sqlite.Row, more ...any) (orchestrator.Session, error) {
	s := orchestrator.Session{AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{}}
	var own []agentSessionRow
	err := row.Scan(append([]any{&s.ID, &s.Conversation.Chat, &s.Conversation.Topic, &s.Person, &s.Title, &s.Dir,
		timeColumn{&s.Created}, timeColumn{&s.Used}, &s.Totals.Messages, &s.Totals.CostUSD, &s.Totals.Tokens, &s.Pinned,
		&s.Archived, &s.Newest,
		listColumn[agentSessionRow]{&own}}, more...)...)
	for _, r := range own {
		s.AgentSessions[orchestrator.AgentEnv{Agent: r.Agent, Account: r.Account, Sandbox: r.Sandbox, Lane: r.Lane}] =
			orchestrator.AgentSession{ID: r.ID, Told: r.Told, UpTo: r.UpTo, Offered: r.Offered,
				Terminal: r.Terminal != 0}
	}
	return s, err
}

type agentSessionRow struct {
	Agent    cli.Agent          `json:"agent"`
	Account  cli.Account        `json:"account"`
	Sandbox  cli.Sandbox        `json:"sandbox"`
	Lane     orchestrator.Lane  `json:"lane"`
	ID       cli.AgentSessionID `json:"id"`
	Told     cli.TurnID         `json:"told"`
	UpTo     int64              `json:"upto"`
	Offered  int64              `json:"offered"`
	Terminal int                `json:"terminal"`
}

func (db *DB) OwnSession(
	ctx context.Context, in orchestrator.ConversationID, name string,
) (orchestrator.SessionID, error) {
	id, err := sqlite.One(ctx, db.file, sqlite.Value[orchestrator.SessionID],
		`SELECT session FROM own_sessions WHERE chat = ? AND topic = ? AND name = ?`, in.Chat, in.Topic, name)
	id, err = mapNoRows(id, err, nil)
	return id, wrap(fmt.Sprintf("find session %q", name), err)
}

// CreateOwnSession writes to a shared transaction; see sqlite.DB.WriteShared. The transaction is committed when the
// session's first turn starts, or earlier.
func (db *DB) CreateOwnSession(ctx context.Context, name string, s orchestrator.Session) error {
	err := db.writeShared(ctx, func(t tx) error {
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

func (db *DB) SaveSession(ctx context.Context, s orchestrator.Session) error {
	return wrap(fmt.Sprintf("save session %s", s.ID), db.write(ctx, func(t tx) error {
		return t.execExisting(orchestrator.ErrNoSession,
			`UPDATE sessions SET title = ?, pinned = ?, archived = ? WHERE id = ?`,
			s.Title, s.Pinned, s.Archived, string(s.ID))
	}))
}

// jobSession is a query that returns a row if the session with the ID ?1 belongs to a job.
const jobSession = `SELECT 1 FROM own_sessions o JOIN jobs j ON j.id = o.name WHERE o.session = ?1`

// sessionUses is a query for one reason why the session with the ID ?1 cannot be deleted. It returns no row if there is
// none. The first column is the SessionUse. The other columns describe a fork of the session: whether it belongs to the
// same conversation, and its title.
const sessionUses = `SELECT 1 AS why, 0, '' FROM conversations WHERE session = ?1
	UNION ALL SELECT 2, 0, '' FROM own_sessions o JOIN jobs j ON j.id = o.name WHERE o.session = ?1
	UNION ALL SELECT 3, 0, '' FROM turns WHERE session = ?1 AND delivered = 0
	UNION ALL SELECT 4, f.chat = s.chat AND f.topic = s.topic, f.title
		FROM sessions f JOIN sessions s ON s.id = f.parent WHERE f.parent = ?1
	ORDER BY why LIMIT 1`

func scanSessionUse(row sqlite.Row) (*orchestrator.SessionInUse, error) {
	use := &orchestrator.SessionInUse{}
	return use, row.Scan(&use.Why, &use.Here, &use.Fork)
}

// usedAs turns the result of the query sessionUses into an error. If the query found no row, it returns nil.
func usedAs(use *orchestrator.SessionInUse, err error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return use
}

func (db *DB) CheckUnused(ctx context.Context, id orchestrator.SessionID) error {
	err := usedAs(sqlite.One(ctx, db.file, scanSessionUse, sessionUses, string(id)))
	return wrap(fmt.Sprintf("check session %s", id), err)
}

// DeleteSession does not delete audit entries.
func (db *DB) DeleteSession(ctx context.Context, id orchestrator.SessionID) error {
	err := db.write(ctx, func(t tx) error {
		if err := usedAs(sqlite.OneIn(t.Tx, scanSessionUse, sessionUses, string(id))); err != nil {
			return err
		}
		for _, query := range []string{
			`DELETE FROM cards WHERE turn IN (SELECT id FROM turns WHERE session = ?)`,
			`DELETE FROM asks WHERE session = ?`,
			`DELETE FROM rules WHERE session = ?`,
			`DELETE FROM agent_sessions WHERE session = ?`,
			`DELETE FROM own_sessions WHERE session = ?`,
			`DELETE FROM summaries WHERE session = ?`,
			`DELETE FROM turns WHERE session = ?`,
		} {
			if _, err := t.Exec(query, string(id)); err != nil {
				return err
			}
		}
		return t.execExisting(orchestrator.ErrNoSession, `DELETE FROM sessions WHERE id = ?`, string(id))
	})
	return wrap(fmt.Sprintf("delete session %s", id), err)
}

func (db *DB) ForkSession(ctx context.Context, s orchestrator.Session, turn cli.TurnID) error {
	err := db.write(ctx, func(t tx) error {
		var parent string
		var number, had int64
		err := t.Row(`SELECT session, number, (SELECT count(*) FROM turns o WHERE o.session = turns.session
			AND o.number > 0 AND o.number <= turns.number)
			FROM turns WHERE id = ? AND session IS NOT NULL AND number > 0`, []any{string(turn)},
			&parent, &number, &had)
		if errors.Is(err, sql.ErrNoRows) {
			err = orchestrator.ErrNoTurn
		}
		if err != nil {
			return err
		}
		s.Totals.Messages = int(had)
		if err := t.insertSession(s); err != nil {
			return err
		}
		_, err = t.Exec(`UPDATE sessions SET parent = ?, parent_turn = ? WHERE id = ?`, parent, number, string(s.ID))
		return err
	})
	return wrap(fmt.Sprintf("fork at turn %s", turn), err)
}

func (db *DB) MoveSession(ctx context.Context, id orchestrator.SessionID, to orchestrator.ConversationID) error {
	err := db.write(ctx, func(t tx) error {
		used, err := t.Exists(jobSession+`
			UNION ALL SELECT 1 FROM turns WHERE session = ?1 AND delivered = 0`, string(id))
		if err == nil && used {
			err = orchestrator.ErrSessionInUse
		}
		if err != nil {
			return err
		}
		if _, err := t.Exec(`UPDATE conversations SET session = NULL WHERE session = ?`, string(id)); err != nil {
			return err
		}
		if _, err := t.Exec(`UPDATE OR IGNORE own_sessions SET chat = ?, topic = ? WHERE session = ?`, to.Chat,
			to.Topic, string(id)); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM own_sessions WHERE session = ? AND NOT (chat = ? AND topic = ?)`, string(id),
			to.Chat, to.Topic); err != nil {
			return err
		}
		return t.execExisting(orchestrator.ErrNoSession,
			`UPDATE sessions SET chat = ?, topic = ? WHERE id = ?`, to.Chat, to.Topic, string(id))
	})
	return wrap(fmt.Sprintf("move session %s", id), err)
}

const summaryColumns = `session, until, text`

func summaryFields(s *orchestrator.Summary) []any { return []any{&s.Session, &s.Until, &s.Text} }

func (db *DB) Summary(ctx context.Context, id orchestrator.SessionID) (orchestrator.Summary, error) {
	s, err := sqlite.One(ctx, db.file, scan(summaryFields),
		`SELECT `+summaryColumns+` FROM summaries WHERE session = ?`, string(id))
	s, err = mapNoRows(s, err, nil)
	return s, wrap(fmt.Sprintf("load the summary of session %s", id), err)
}

// SaveSummary does not wait for the disk. If a power failure loses the summary, the agent writes another one.
func (db *DB) SaveSummary(ctx context.Context, s orchestrator.Summary) error {
	return wrap(fmt.Sprintf("store a summary of session %s", s.Session), db.writeLazily(ctx, func(t tx) error {
		return t.upsert("summaries", "session", summaryColumns, summaryFields(&s)...)
	}))
}
