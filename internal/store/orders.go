package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

var _ orchestrator.OrderStore = (*DB)(nil)

// OwnSession is the session of a name in a conversation; empty for none.
func (db *DB) OwnSession(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.SessionID, error) {
	id, err := one(ctx, db.read, scanOne[orchestrator.SessionID],
		`SELECT session FROM own_sessions WHERE chat = ? AND topic = ? AND name = ?`, in.Chat, in.Topic, name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, wrap(fmt.Sprintf("find session %q", name), err)
}

// CreateOwnSession stores s as the one of its name, and leaves the conversation's current session alone. It is not
// waited for: the turn that uses it is.
func (db *DB) CreateOwnSession(ctx context.Context, name string, s orchestrator.Session) error {
	err := db.write.doSoon(ctx, func(t *tx) error {
		if err := t.insertSession(s); err != nil {
			return err
		}
		_, err := t.exec(`INSERT INTO own_sessions (chat, topic, name, session) VALUES (?, ?, ?, ?)
			ON CONFLICT (chat, topic, name) DO UPDATE SET session = excluded.session`,
			s.Conversation.Chat, s.Conversation.Topic, name, string(s.ID))
		return err
	})
	return wrap(fmt.Sprintf("create session %s", s.ID), err)
}

type wantsRow struct {
	Own     string `json:"own,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Timeout int64  `json:"timeout_ns,omitempty"`
	Silence string `json:"silence,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
	Known   string `json:"known,omitempty"`
	Title   string `json:"title,omitempty"`
	Then    string `json:"then,omitempty"`
}

// encodeWants gives JSON, and nothing for a turn that wants nothing.
func encodeWants(w orchestrator.Wants) (string, error) {
	if w == (orchestrator.Wants{}) {
		return "", nil
	}
	text, err := json.Marshal(wantsRow{Own: w.Own, Agent: string(w.Agent), Model: string(w.Model), Effort: string(w.Effort),
		Dir: w.Dir, Timeout: int64(w.Timeout), Silence: w.Silence, Sandbox: w.Sandbox,
		Known: w.Known, Title: w.Title, Then: w.Then})
	if err != nil {
		return "", fmt.Errorf("encode what a turn wants: %w", err)
	}
	return string(text), nil
}

func decodeWants(text string) (orchestrator.Wants, error) {
	var row wantsRow
	if err := decode(text, &row); err != nil {
		return orchestrator.Wants{}, err
	}
	return orchestrator.Wants{Own: row.Own, Agent: cli.Agent(row.Agent), Model: cli.ModelID(row.Model),
		Effort: cli.Effort(row.Effort), Dir: row.Dir, Timeout: time.Duration(row.Timeout), Silence: row.Silence, Sandbox: row.Sandbox,
		Known: row.Known, Title: row.Title, Then: row.Then}, nil
}
