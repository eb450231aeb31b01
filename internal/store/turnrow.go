package store

import (
	"encoding/json"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

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
	Raw      string      `json:"raw,omitempty"`
	Announce string      `json:"announce,omitempty"`
	Short    string      `json:"short,omitempty"`
	Kind     string      `json:"kind,omitempty"`
	Offers   []string    `json:"offers,omitempty"`
	Offer    string      `json:"offer,omitempty"` // of outcomes that were stored before Offers
	At       int64       `json:"at,omitempty"`
	Other    string      `json:"other,omitempty"`
	Who      string      `json:"who,omitempty"`
	Steps    int         `json:"steps,omitempty"`
	Fill     *fillRow    `json:"fill,omitempty"`
	Changed  *changedRow `json:"changed,omitempty"`
}

type changedRow struct {
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	NoUndo  string `json:"no_undo,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

type fillRow struct {
	Used  int64         `json:"used"`
	Limit int64         `json:"limit,omitempty"`
	Parts []fillPartRow `json:"parts,omitempty"`
}

type fillPartRow struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

func fillRowOf(f cli.Fill) *fillRow {
	if f.Used == 0 {
		return nil
	}
	row := &fillRow{Used: f.Used, Limit: f.Limit}
	for _, p := range f.Parts {
		row.Parts = append(row.Parts, fillPartRow(p))
	}
	return row
}

func (r *fillRow) fill() cli.Fill {
	if r == nil {
		return cli.Fill{}
	}
	f := cli.Fill{Used: r.Used, Limit: r.Limit}
	for _, p := range r.Parts {
		f.Parts = append(f.Parts, cli.FillPart(p))
	}
	return f
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

func scanTurn(row sqlite.Row) (t orchestrator.Turn, err error) {
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
		Duration: int64(o.Duration), Fallback: o.Fallback, Failure: o.Failure, Announce: string(o.Announce), Short: o.Short, Steps: o.Steps, Raw: o.Recovery.Raw, Fill: fillRowOf(o.Fill),
		Kind: string(o.Recovery.Kind), At: millis(o.Recovery.At), Other: string(o.Recovery.Other), Who: string(o.Recovery.Who),
	}
	if c := o.Changed; c != (orchestrator.Changed{}) {
		row.Changed = &changedRow{c.Files, c.Added, c.Removed, string(c.NoUndo), c.Ignored}
	}
	for _, a := range o.Recovery.Offer {
		row.Offers = append(row.Offers, string(a))
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
		Duration: time.Duration(row.Duration), Fallback: row.Fallback, Failure: row.Failure, Ending: orchestrator.Ending{Announce: orchestrator.Announcement(row.Announce), Short: row.Short, Steps: row.Steps, Fill: row.Fill.fill()},
		Recovery: orchestrator.Recovery{Kind: cli.FailureKind(row.Kind), Offer: formerOffer(row.Offer), At: instant(row.At), Other: cli.Agent(row.Other), Who: cli.Agent(row.Who), Raw: row.Raw},
	}
	if c := row.Changed; c != nil {
		o.Changed = orchestrator.Changed{Files: c.Files, Added: c.Added, Removed: c.Removed, NoUndo: orchestrator.NoUndo(c.NoUndo), Ignored: c.Ignored}
	}
	for _, a := range row.Offers {
		o.Recovery.Offer = append(o.Recovery.Offer, orchestrator.Action(a))
	}
	for _, d := range row.Denials {
		o.Denials = append(o.Denials, cli.Denial(d))
	}
	return o, nil
}

// formerOffer is what an outcome offered that named its offer in one word.
func formerOffer(word string) []orchestrator.Action {
	switch word {
	case "retry", "wait", "other-agent":
		return []orchestrator.Action{orchestrator.ActionAgain}
	case "fresh":
		return []orchestrator.Action{orchestrator.ActionFresh, orchestrator.ActionAgain}
	}
	return nil
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

type rightsRow struct {
	Of    string   `json:"of"`
	Mode  string   `json:"mode,omitempty"`
	Rules []string `json:"rules,omitempty"`
	Tools []string `json:"tools,omitempty"`
	No    []string `json:"denied_tools,omitempty"`
}

// encodeRights gives JSON, and nothing for the rights of the chat.
func encodeRights(r orchestrator.Rights) (string, error) {
	if r.Of == orchestrator.RightsOfChat {
		return "", nil
	}
	text, err := json.Marshal(rightsRow{Of: string(r.Of), Mode: string(r.Mode), Rules: r.Rules, Tools: r.Tools.Only, No: r.Tools.Denied})
	if err != nil {
		return "", fmt.Errorf("encode the rights of a turn: %w", err)
	}
	return string(text), nil
}

func decodeRights(text string) (orchestrator.Rights, error) {
	var row rightsRow
	if err := decode(text, &row); err != nil {
		return orchestrator.Rights{}, err
	}
	return orchestrator.Rights{
		Of: orchestrator.RightsOf(row.Of), Mode: cli.PermissionMode(row.Mode), Rules: row.Rules, Tools: cli.ToolList{Only: row.Tools, Denied: row.No},
	}, nil
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
	Quote   bool   `json:"quote,omitempty"`
	Think   string `json:"think,omitempty"`
	Display string `json:"display,omitempty"`
	Task    string `json:"task,omitempty"`
	Job     string `json:"job,omitempty"`
}

// encodeWants gives JSON, and nothing for a turn that wants nothing.
func encodeWants(w orchestrator.Wants) (string, error) {
	if w == (orchestrator.Wants{}) {
		return "", nil
	}
	text, err := json.Marshal(wantsRow{Own: w.Own, Agent: string(w.Agent), Model: string(w.Model), Effort: string(w.Effort),
		Dir: w.Dir, Timeout: int64(w.Timeout), Silence: w.Silence, Sandbox: w.Sandbox,
		Known: w.Known, Title: w.Title, Then: w.Card.Then, Quote: w.Card.Quote, Think: string(w.Card.Think), Display: string(w.Card.Display), Task: string(w.Task), Job: string(w.Job)})
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
		Known: row.Known, Title: row.Title, Card: orchestrator.CardStyle{Then: row.Then, Quote: row.Quote, Think: orchestrator.ThinkMode(row.Think), Display: orchestrator.DisplayMode(row.Display)}, Purpose: orchestrator.Purpose{Task: cli.Task(row.Task), Job: orchestrator.JobID(row.Job)}}, nil
}
