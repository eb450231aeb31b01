package store

import (
	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// outcomeRow is an outcome with what is stored in another form.
type outcomeRow struct {
	orchestrator.Outcome
	orchestrator.Recovery
	Usage  usageRow `json:"usage"`
	At     int64    `json:"at,omitempty"`
	Former string   `json:"offer,omitempty"` // of outcomes that were stored before they had several offers
}

type usageRow struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// finalStates are the states a running turn can end in.
func finalStates() map[orchestrator.TurnState]bool {
	return map[orchestrator.TurnState]bool{
		orchestrator.TurnDone: true, orchestrator.TurnFailed: true,
		orchestrator.TurnAborted: true, orchestrator.TurnInterrupted: true,
	}
}

func scanTurn(row sqlite.Row) (t orchestrator.Turn, err error) {
	var answer, outcome, wants, rights string
	p := &t.Prompt
	err = row.Scan(&t.ID, &t.Session, &t.Again, &p.Conversation.Chat, &p.Conversation.Topic, &p.Person, &p.Text,
		list[orchestrator.Attachment]{&p.Attachments}, &p.Message, list[int64]{&p.Updates}, &t.State, &t.Agent, &t.Model,
		moment{&t.Queued}, moment{&t.Started}, moment{&t.Ended}, &answer, &outcome, &t.Delivered, &t.Aborting, &t.Into, &wants,
		&t.Sandbox, &rights, moment{&t.Bypass}, &t.Crashes)
	if err != nil {
		return orchestrator.Turn{}, err
	}
	if t.State == orchestrator.TurnCancelled && t.Into != "" {
		t.State = orchestrator.TurnSteered
	}
	if t.Wants, err = decodeWants(wants); err != nil {
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
	o.Recovery.At, o.Recovery.Offer = instant(row.At), append(formerOffer(row.Former), o.Recovery.Offer...)
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

type rightsRow struct {
	Of    orchestrator.RightsOf `json:"of"`
	Mode  cli.PermissionMode    `json:"mode,omitempty"`
	Rules []string              `json:"rules,omitempty"`
	Tools []string              `json:"tools,omitempty"`
	No    []string              `json:"denied_tools,omitempty"`
}

// encodeRights gives JSON, and nothing for the rights of the chat.
func encodeRights(r orchestrator.Rights) (string, error) {
	if r.Of == orchestrator.RightsOfChat {
		return "", nil
	}
	return encode(rightsRow{Of: r.Of, Mode: r.Mode, Rules: r.Rules, Tools: r.Tools.Only, No: r.Tools.Denied})
}

func decodeRights(text string) (orchestrator.Rights, error) {
	var row rightsRow
	err := decode(text, &row)
	return orchestrator.Rights{Of: row.Of, Mode: row.Mode, Rules: row.Rules, Tools: cli.ToolList{Only: row.Tools, Denied: row.No}}, err
}

// wantsRow is what a turn wants, with the looks of its card.
type wantsRow struct {
	orchestrator.Wants
	orchestrator.CardStyle
}

// encodeWants gives JSON, and nothing for a turn that wants nothing.
func encodeWants(w orchestrator.Wants) (string, error) {
	if w == (orchestrator.Wants{}) {
		return "", nil
	}
	return encode(wantsRow{w, w.Card})
}

func decodeWants(text string) (orchestrator.Wants, error) {
	var row wantsRow
	err := decode(text, &row)
	row.Wants.Card = row.CardStyle
	return row.Wants, err
}
