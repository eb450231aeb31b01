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
	Approval  *approvalRow  `json:"approval,omitempty"`
	Questions []questionRow `json:"questions,omitempty"`
}

type approvalRow struct {
	ID      string          `json:"id"`
	Tool    string          `json:"tool"`
	Title   string          `json:"title,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Changes []changeRow     `json:"changes,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Fields  []fieldRow      `json:"fields"` // nil before there were any
	Missing string          `json:"missing,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Started string          `json:"started,omitempty"`
	Deaf    bool            `json:"deaf,omitempty"`
	Edits   bool            `json:"edits,omitempty"` // of the terms
}

type fieldRow struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Weight string `json:"weight,omitempty"`
}

type changeRow struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Diff string `json:"diff,omitempty"`
}

type questionRow struct {
	Header  string      `json:"header,omitempty"`
	Text    string      `json:"text"`
	Options []optionRow `json:"options,omitempty"`
	Multi   bool        `json:"multi,omitempty"`
	Free    bool        `json:"free,omitempty"`
	Secret  bool        `json:"secret,omitempty"`
}

type optionRow struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

func encodeRequest(a orchestrator.Approval) (string, error) {
	var row requestRow
	if p := a.Request; p != nil {
		row.Approval = &approvalRow{ID: string(p.ID), Tool: p.Tool, Title: p.Title, Detail: p.Detail, Reason: p.Reason,
			Started: string(p.Started), Deaf: p.Deaf, Missing: p.Missing, Edits: a.Edits, Fields: []fieldRow{}}
		for _, f := range p.Fields {
			row.Approval.Fields = append(row.Approval.Fields, fieldRow{f.Name, f.Value, string(f.Weight)})
		}
		if json.Valid(p.Input) {
			row.Approval.Input = p.Input
		}
		for _, c := range p.Changes {
			row.Approval.Changes = append(row.Approval.Changes, changeRow{Path: c.Path, Kind: string(c.Kind), Diff: c.Diff})
		}
	}
	for _, q := range a.Questions {
		r := questionRow{Header: q.Header, Text: q.Text, Multi: q.Multi, Free: q.Free, Secret: q.Secret}
		for _, o := range q.Options {
			r.Options = append(r.Options, optionRow(o))
		}
		row.Questions = append(row.Questions, r)
	}
	return encode(row)
}

func decodeRequest(text string, a *orchestrator.Approval) error {
	var row requestRow
	if err := decode(text, &row); err != nil {
		return err
	}
	if p := row.Approval; p != nil {
		a.Edits = p.Edits
		a.Request = &cli.ApprovalAsked{ID: cli.ApprovalID(p.ID), Tool: p.Tool, Title: p.Title, Detail: p.Detail, Input: p.Input,
			Reason: p.Reason, Started: cli.ToolID(p.Started), Deaf: p.Deaf, Missing: p.Missing, Fields: fieldsOf(p)}
		for _, c := range p.Changes {
			a.Request.Changes = append(a.Request.Changes,
				cli.FileChanged{Path: c.Path, Kind: cli.ChangeKind(c.Kind), Diff: c.Diff})
		}
	}
	for _, r := range row.Questions {
		q := cli.Question{Header: r.Header, Text: r.Text, Multi: r.Multi, Free: r.Free, Secret: r.Secret}
		for _, o := range r.Options {
			q.Options = append(q.Options, cli.Option(o))
		}
		a.Questions = append(a.Questions, q)
	}
	return nil
}

// fieldsOf are the fields of an approval. A row that a version without them wrote shows its whole input.
func fieldsOf(p *approvalRow) (fields []cli.Field) {
	if p.Fields == nil {
		return cli.Reading{}.Fields(p.Input)
	}
	for _, f := range p.Fields {
		fields = append(fields, cli.Field{Name: f.Name, Value: f.Value, Weight: cli.Weight(f.Weight)})
	}
	return fields
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
