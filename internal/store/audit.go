package store

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const auditColumns = `at, what, chat, topic, turn, ask, agent, tool, title, choice, person, rule, reason, same, call`

// titleBytes limits the bytes of AuditEntry.Title.
const titleBytes = 500

func (db *DB) RecordAudit(ctx context.Context, entries ...orchestrator.AuditEntry) error {
	return wrap("record the audit", db.writeLazily(ctx, func(t tx) error { return t.audit(entries...) }))
}

func auditFields(e *orchestrator.AuditEntry) []any {
	return []any{timeColumn{&e.At}, &e.What, &e.Conversation.Chat, &e.Conversation.Topic, &e.Turn, &e.Approval,
		&e.Agent, &e.Tool,
		&e.Title, &e.Choice, &e.By, &e.Rule, &e.Reason, &e.Same, &e.Call}
}

func (t tx) audit(entries ...orchestrator.AuditEntry) error {
	for _, e := range entries {
		e.Title = cli.Shorten(e.Title, titleBytes)
		_, err := t.Exec(`INSERT INTO audit (`+auditColumns+`) 
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15
			WHERE ?15 = '' OR NOT EXISTS (SELECT 1 FROM ask_requests WHERE turn = ?5 AND call = ?15)
			ON CONFLICT (turn, call) WHERE call <> '' DO NOTHING`, auditFields(&e)...)
		if err != nil {
			return err
		}
	}
	return nil
}

func auditEntry(a orchestrator.Approval, what orchestrator.AuditKind, at time.Time) orchestrator.AuditEntry {
	e := orchestrator.AuditEntry{At: at, What: what, Conversation: a.Conversation, Turn: a.Turn, Approval: a.ID,
		Agent: a.Agent,
		By:    a.By, Rule: a.Ruled, Reason: a.Reason, Same: a.Same()}
	if a.Request != nil {
		e.Tool, e.Title = a.Request.Tool, a.Request.Title
	} else if len(a.Questions) > 0 {
		e.Title = a.Questions[0].Text
	}
	return e
}

// automaticKind returns the audit kind for an approval that a rule or a permission mode decided, without a user.
func automaticKind(a orchestrator.Approval) orchestrator.AuditKind {
	switch {
	case a.State == orchestrator.ApprovalDenied:
		return orchestrator.AuditDenied
	case a.Ruled == orchestrator.RuledByMode:
		return orchestrator.AuditAccepted
	}
	return orchestrator.AuditRuled
}

func (db *DB) AuditSince(ctx context.Context, since time.Time, limit int) ([]orchestrator.AuditEntry, error) {
	all, err := sqlite.Many(ctx, db.file, scanAudit,
		`SELECT `+auditColumns+`, id FROM audit WHERE at >= ? ORDER BY id DESC LIMIT ?`,
		millis(since), nonNegative(limit))
	return all, wrap("list the audit", err)
}

func scanAudit(row sqlite.Row) (e orchestrator.AuditEntry, err error) {
	err = row.Scan(append(auditFields(&e), &e.ID)...)
	return e, err
}
