package store

import (
	"encoding/json"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// The JSON in the database has its own types, so that renaming a field of the domain loses nothing stored.

type attachmentRow struct {
	Path  string `json:"path"`
	Name  string `json:"name"`
	MIME  string `json:"mime"`
	Image bool   `json:"image,omitempty"`
}

type outcomeRow struct {
	Agent    string      `json:"agent,omitempty"`
	Model    string      `json:"model,omitempty"`
	Usage    usageRow    `json:"usage"`
	CostUSD  float64     `json:"cost_usd,omitempty"`
	Duration int64       `json:"duration_ns,omitempty"`
	Denials  []denialRow `json:"denials,omitempty"`
	Fallback bool        `json:"fallback,omitempty"`
	Failure  string      `json:"failure,omitempty"`
	Offer    string      `json:"offer,omitempty"`
}

type usageRow struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

type denialRow struct {
	Tool   string `json:"tool"`
	Title  string `json:"title,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// finalStates are the states a running turn can end in.
func finalStates() map[orchestrator.TurnState]bool {
	return map[orchestrator.TurnState]bool{
		orchestrator.TurnDone: true, orchestrator.TurnFailed: true,
		orchestrator.TurnAborted: true, orchestrator.TurnInterrupted: true,
	}
}

func scanTurn(row scanner) (t orchestrator.Turn, err error) {
	var attachments, updates, answer, outcome, wants, rights string
	var queued, started, ended, bypass int64
	p := &t.Prompt
	err = row.Scan(&t.ID, &t.Session, &t.Again, &p.Conversation.Chat, &p.Conversation.Topic, &p.Person, &p.Text,
		&attachments, &p.Message, &updates, &t.State, &t.Agent, &t.Model, &queued, &started, &ended,
		&answer, &outcome, &t.Delivered, &t.Aborting, &t.Into, &wants, &t.Sandbox, &rights, &bypass, &t.Crashes)
	if err != nil {
		return orchestrator.Turn{}, err
	}
	if t.State == orchestrator.TurnCancelled && t.Into != "" {
		t.State = orchestrator.TurnSteered
	}
	t.Queued, t.Started, t.Ended, t.Bypass = instant(queued), instant(started), instant(ended), instant(bypass)
	if err := decode(updates, &p.Updates); err != nil {
		return orchestrator.Turn{}, err
	}
	if t.Wants, err = decodeWants(wants); err != nil {
		return orchestrator.Turn{}, err
	}
	if p.Rights, err = decodeRights(rights); err != nil {
		return orchestrator.Turn{}, err
	}
	if p.Attachments, err = decodeAttachments(attachments); err != nil {
		return orchestrator.Turn{}, err
	}
	if outcome != "" {
		t.Outcome, err = decodeOutcome(outcome)
		t.Outcome.State, t.Outcome.Text = t.State, answer
	}
	return t, err
}

func encodeOutcome(o orchestrator.Outcome) (string, error) {
	row := outcomeRow{
		Agent: string(o.Agent), Model: string(o.Model), Usage: usageRow(o.Usage), CostUSD: o.CostUSD,
		Duration: int64(o.Duration), Fallback: o.Fallback, Failure: o.Failure, Offer: string(o.Offer),
	}
	for _, d := range o.Denials {
		row.Denials = append(row.Denials, denialRow(d))
	}
	text, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("encode outcome: %w", err)
	}
	return string(text), nil
}

func decodeOutcome(text string) (orchestrator.Outcome, error) {
	var row outcomeRow
	if err := decode(text, &row); err != nil {
		return orchestrator.Outcome{}, err
	}
	o := orchestrator.Outcome{
		Agent: cli.Agent(row.Agent), Model: cli.ModelID(row.Model), Usage: cli.Usage(row.Usage), CostUSD: row.CostUSD,
		Duration: time.Duration(row.Duration), Fallback: row.Fallback, Failure: row.Failure, Offer: cli.Action(row.Offer),
	}
	for _, d := range row.Denials {
		o.Denials = append(o.Denials, cli.Denial(d))
	}
	return o, nil
}

func encodeAttachments(list []orchestrator.Attachment) (string, error) {
	rows := make([]attachmentRow, 0, len(list))
	for _, a := range list {
		rows = append(rows, attachmentRow(a))
	}
	return encodeList(rows)
}

func decodeAttachments(text string) ([]orchestrator.Attachment, error) {
	var rows []attachmentRow
	if err := decode(text, &rows); err != nil {
		return nil, err
	}
	var list []orchestrator.Attachment
	for _, r := range rows {
		list = append(list, orchestrator.Attachment(r))
	}
	return list, nil
}

// encodeList gives JSON, and nothing for an empty list.
func encodeList[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode list: %w", err)
	}
	return string(text), nil
}

func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decode stored JSON: %w", err)
	}
	return nil
}

func scanOne[T any](row scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// millis is how times are kept; a zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// blob keeps nil bytes from becoming NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// atMost keeps a negative limit from meaning "all", as it does to SQLite.
func atMost(limit int) int { return max(limit, 0) }
