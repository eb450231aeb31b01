package store

import (
	"context"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const ruleColumns = `id, chat, topic, session, agent, tool, dir, kind, value, text, person, created`

func (t tx) insertRule(r orchestrator.Rule) error {
	_, err := t.Exec(`INSERT INTO rules (`+ruleColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(r.ID), r.Conversation.Chat, r.Conversation.Topic, string(r.Session), string(r.Agent), r.Tool, r.Dir,
		string(r.Kind), r.Value, r.Text, int64(r.By), millis(r.Created))
	return err
}

// RulesOf lists a conversation's rules, those of all its sessions too, oldest first.
func (db *DB) RulesOf(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.Rule, error) {
	all, err := sqlite.Many(ctx, db.file, scanRule, `SELECT `+ruleColumns+` FROM rules WHERE chat = ? AND topic = ? ORDER BY seq`,
		in.Chat, in.Topic)
	return all, wrap(fmt.Sprintf("list rules of %s", in.Key()), err)
}

// RevokeRule deletes a rule of a conversation and audits that; false if there is no such rule.
func (db *DB) RevokeRule(ctx context.Context, id orchestrator.RuleID, in orchestrator.ConversationID,
	by orchestrator.PersonID, at time.Time,
) (revoked bool, err error) {
	err = db.write(ctx, func(t tx) error {
		var agent, tool, text string
		known, err := t.Exists(`SELECT 1 FROM rules WHERE id = ? AND chat = ? AND topic = ?`, string(id), in.Chat, in.Topic)
		if err != nil || !known {
			return err
		}
		if err := t.Row(`DELETE FROM rules WHERE id = ? RETURNING agent, tool, text`, []any{string(id)}, &agent, &tool, &text); err != nil {
			return err
		}
		revoked = true
		return t.audit(orchestrator.AuditEntry{At: at, What: orchestrator.AuditRevoked, Conversation: in,
			Agent: cli.Agent(agent), Tool: tool, By: by, Rule: text})
	})
	return revoked && err == nil, wrap("revoke rule", err)
}

func scanRule(row sqlite.Row) (r orchestrator.Rule, err error) {
	var created int64
	err = row.Scan(&r.ID, &r.Conversation.Chat, &r.Conversation.Topic, &r.Session, &r.Agent, &r.Tool, &r.Dir,
		&r.Kind, &r.Value, &r.Text, &r.By, &created)
	r.Created = instant(created)
	return r, err
}
