package claude

import (
	"encoding/json"
	"maps"
	"slices"

	"ductor/cli"
)

// note is what goes with the mark of a turn: what ductor must know after a restart to read the turn's output as
// before, and what was sent in mid-turn.
type note struct {
	Session cli.AgentSessionID        `json:"s,omitempty"`
	Model   cli.ModelID               `json:"m,omitempty"` // as init named it last
	CostUSD float64                   `json:"usd,omitempty"`
	Models  map[cli.ModelID]cli.Usage `json:"u,omitempty"`
	Denied  []string                  `json:"d,omitempty"` // digests of tool ids
	Warned  []string                  `json:"w,omitempty"`
	Tasks   []string                  `json:"t,omitempty"` // that are open
	Before  turnSettings              `json:"b"`           // at the beginning of the turn
	During  turnSettings              `json:"n"`           // in it

	Steers   []string         `json:"steer,omitempty"`   // ids of messages sent in mid-turn, in order
	Sending  string           `json:"sending,omitempty"` // the one of Steers that is written after this note
	Answered []cli.ApprovalID `json:"ans,omitempty"`
}

const (
	keptDenied = 32
	keptWarned = 16
)

// noteOf writes down what m knows.
func noteOf(id cli.AgentSessionID, m *memory, before, during turnSettings) note {
	return note{
		Session: id, Model: m.model, CostUSD: m.costUSD, Models: maps.Clone(m.byModel),
		Denied: lastOf(m.denials, keptDenied), Warned: lastOf(slices.Sorted(maps.Keys(m.warned)), keptWarned),
		Tasks:  m.tasks.list(),
		Before: before, During: during,
	}
}

func lastOf(all []string, n int) []string { return slices.Clone(all[max(len(all)-n, 0):]) }

func (n note) String() string {
	b, err := json.Marshal(n)
	if err != nil {
		return "" // a number that is none, which Claude cannot have said in JSON
	}
	return string(b)
}

// readNote reads what String wrote. What cannot be read is taken as nothing known.
func readNote(text string) note {
	var n note
	if json.Unmarshal([]byte(text), &n) != nil {
		return note{}
	}
	return n
}

// memory is what the process is remembered to have said.
func (n note) memory() *memory {
	m := newMemory()
	m.costUSD, m.model = n.CostUSD, n.Model
	maps.Copy(m.byModel, n.Models)
	for _, d := range n.Denied {
		m.deny(d)
	}
	for _, w := range n.Warned {
		m.warned[w] = true
	}
	for _, id := range n.Tasks {
		m.tasks.begin(id)
	}
	return m
}
