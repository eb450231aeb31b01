package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// requestRow is what an agent asked: an approval or questions.
type requestRow struct {
	Approval  *approvalRow   `json:"approval,omitempty"`
	Questions []cli.Question `json:"questions,omitempty"`
}

type approvalRow struct {
	cli.ApprovalAsked
	Edits bool `json:"edits,omitempty"` // of the terms
}

func encodeRequest(a orchestrator.Approval) (string, error) {
	row := requestRow{Questions: a.Questions}
	if a.Request != nil {
		p := *a.Request
		if !json.Valid(p.Input) {
			p.Input = nil
		}
		p.Fields = append([]cli.Field{}, p.Fields...) // nil is what a version without them wrote
		row.Approval = &approvalRow{p, a.Edits}
	}
	return encode(row)
}

func decodeRequest(text string, a *orchestrator.Approval) error {
	var row requestRow
	if err := decode(text, &row); err != nil {
		return err
	}
	if row.Approval != nil {
		a.Edits, a.Request = row.Approval.Edits, &row.Approval.ApprovalAsked
		if a.Request.Fields == nil { // then users see its whole input
			a.Request.Fields = cli.Reading{}.Fields(a.Request.Input)
		}
	}
	a.Questions = row.Questions
	return nil
}

func approvalFields(a *orchestrator.Approval, content *string) []any {
	return []any{&a.ID, &a.Nonce, &a.Turn, &a.Session, &a.Conversation.Chat, &a.Conversation.Topic, &a.Agent, &a.Dir,
		content, &a.SessionRule, &a.Rule, list[orchestrator.PersonID]{&a.Approvers}, moment{&a.Asked}, moment{&a.Expires},
		&a.State, &a.Ruled, &a.Reason, moment{&a.Decided}}
}

func scanApproval(row sqlite.Row) (a orchestrator.Approval, err error) {
	var content string
	more := []any{&a.By, list[[]string]{&a.Answers}, list[cli.ApprovalID]{&a.AgentIDs}}
	if err = row.Scan(append(approvalFields(&a, &content), more...)...); err != nil {
		return orchestrator.Approval{}, err
	}
	return a, decodeRequest(content, &a)
}

const ruleColumns = `id, chat, topic, session, agent, tool, dir, kind, value, text, person, created`

func ruleFields(r *orchestrator.Rule) []any {
	return []any{&r.ID, &r.Conversation.Chat, &r.Conversation.Topic, &r.Session, &r.Agent, &r.Tool, &r.Dir,
		&r.Kind, &r.Value, &r.Text, &r.By, moment{&r.Created}}
}

func (t tx) insertRule(r orchestrator.Rule) error {
	_, err := t.insert("rules", ruleColumns, "", ruleFields(&r)...)
	return err
}

// RulesOf lists a conversation's rules, those of all its sessions too, oldest first.
func (db *DB) RulesOf(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.Rule, error) {
	all, err := sqlite.Many(ctx, db.file, scan(ruleFields), `SELECT `+ruleColumns+` FROM rules WHERE chat = ? AND topic = ? ORDER BY seq`,
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
