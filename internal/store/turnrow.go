package store

import (
	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// outcomeRow is the stored form of an Outcome. Its fields Usage and At store Outcome.Usage and Recovery.At, which the
// JSON of these types omits.
type outcomeRow struct {
	orchestrator.Outcome
	orchestrator.Recovery
	Usage       usageRow `json:"usage"`
	At          int64    `json:"at,omitempty"`
	LegacyOffer string   `json:"offer,omitempty"` // set by old versions, which stored a single action
}

type usageRow struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

func scanTurn(row sqlite.Row) (t orchestrator.Turn, err error) {
	var answer, outcome, wants, rights string
	p := &t.Prompt
	err = row.Scan(&t.ID, &t.Session, &t.Again, &p.Conversation.Chat, &p.Conversation.Topic, &p.Person, &p.Text,
		listColumn[orchestrator.Attachment]{&p.Attachments}, &p.Message, listColumn[int64]{&p.Updates}, &t.State,
		&t.Agent, &t.Model,
		timeColumn{&t.Queued}, timeColumn{&t.Started}, timeColumn{&t.Ended}, &answer, &outcome, &t.Delivered,
		&t.Aborting,
		&t.Entry.Into, &wants,
		&t.Sandbox, &rights, timeColumn{&t.Bypass}, &t.Crashes, &t.Entry.Kind, &t.Entry.Role, &t.Entry.Asks,
		&t.Entry.Number, &t.Entry.UpTo, &t.Entry.Account)
	if err != nil {
		return orchestrator.Turn{}, err
	}
	if t.State == orchestrator.TurnCancelled && t.Entry.Into != "" {
		t.State = orchestrator.TurnSteered
	}
	if err = decodeWants(wants, &t); err != nil {
		return orchestrator.Turn{}, err
	}
	if p.Rights, err = decodeRights(rights); err != nil {
		return orchestrator.Turn{}, err
	}
	if outcome != "" {
		t.Outcome, err = decodeOutcome(outcome)
		t.Outcome.State, t.Outcome.Text = t.State, answer
	}
	return t, err
}

func encodeOutcome(o orchestrator.Outcome) (string, error) {
	return encode(outcomeRow{Outcome: o, Recovery: o.Recovery, Usage: usageRow(o.Usage), At: millis(o.Recovery.At)})
}

func decodeOutcome(text string) (orchestrator.Outcome, error) {
	var row outcomeRow
	if err := decode(text, &row); err != nil {
		return orchestrator.Outcome{}, err
	}
	o := row.Outcome
	o.Recovery, o.Usage = row.Recovery, cli.Usage(row.Usage)
	o.Recovery.At, o.Recovery.Offer = fromMillis(row.At), append(legacyOffer(row.LegacyOffer), o.Recovery.Offer...)
	return o, nil
}

// legacyOffer converts the action that an old version stored.
func legacyOffer(word string) []orchestrator.Action {
	switch word {
	case "retry", "wait", "other-agent":
		return []orchestrator.Action{orchestrator.ActionAgain}
	case "fresh":
		return []orchestrator.Action{orchestrator.ActionFresh, orchestrator.ActionAgain}
	}
	return nil
}

type rightsRow struct {
	Of    orchestrator.RightsOf `json:"of"`
	Mode  cli.PermissionMode    `json:"mode,omitempty"`
	Rules []string              `json:"rules,omitempty"`
	Tools []string              `json:"tools,omitempty"`
	No    []string              `json:"denied_tools,omitempty"`
}

// encodeRights returns rights as JSON, or "" for RightsOfChat.
func encodeRights(r orchestrator.Rights) (string, error) {
	if r.Of == orchestrator.RightsOfChat {
		return "", nil
	}
	return encode(rightsRow{Of: r.Of, Mode: r.Mode, Rules: r.Rules, Tools: r.Tools.Only, No: r.Tools.Denied})
}

func decodeRights(text string) (orchestrator.Rights, error) {
	var row rightsRow
	err := decode(text, &row)
	return orchestrator.Rights{Of: row.Of, Mode: row.Mode, Rules: row.Rules, Tools: cli.ToolList{Only: row.Tools,
		Denied: row.No}}, err
}

// wantsRow is the stored form of a turn's Wants and Prompt.Quotes.
type wantsRow struct {
	orchestrator.Wants
	orchestrator.CardStyle
	Quotes cli.TurnID `json:"quotes,omitempty"`
}

// encodeWants returns a turn's Wants and Prompt.Quotes as JSON, or "" if both are zero.
func encodeWants(t orchestrator.Turn) (string, error) {
	if t.Wants == (orchestrator.Wants{}) && t.Prompt.Quotes == "" {
		return "", nil
	}
	return encode(wantsRow{t.Wants, t.Wants.Card, t.Prompt.Quotes})
}

func decodeWants(text string, t *orchestrator.Turn) error {
	var row wantsRow
	err := decode(text, &row)
	t.Wants, t.Prompt.Quotes = row.Wants, row.Quotes
	t.Wants.Card = row.CardStyle
	return err
}
