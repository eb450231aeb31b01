package acp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// Adopt implements cli.Provider. It resumes a turn that was running when ductor was restarted. The returned session
// accepts no further turn.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	kept, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	s := kept.(*session)
	s.workspace = s.newWorkspace(req)
	return live{s.live}, nil
}

// Await implements shared.Server. It prepares the session of a turn that ran before ductor was restarted.
//
// Await must find out whether the agent received the whole prompt, which is the first message of a turn. So it compares
// the length of the prompt with the number of bytes that ductor has written since the start of the turn.
func (proc *agentProcess) Await(m cli.Mark, left cli.LeftRun) (kept any, drop func()) {
	var n note
	if json.Unmarshal([]byte(m.Note), &n) != nil || n.Session == "" {
		return nil, nil
	}
	proc.identify(n.Name, nil)
	s := &session{
		process: proc, id: cli.AgentSessionID(n.Session), adopted: n,
		offers: offers{model: choice{current: n.Model}}, past: past{totals: n.Totals},
	}
	reached := left.Input.End - m.Input
	sent := n.Sent || reached >= int64(n.Length)
	s.live = shared.Adopt(&proc.provider.live, s, m, sent)
	proc.sessions.Set(s.id, s)
	fail := func(kind cli.FailureKind, why string) {
		s.live.Deliver(shared.Item[news]{Unsent: cli.Failf(kind, proc.options().Agent, "%s", why)}, 0)
	}
	switch {
	case sent:
	case reached > 0:
		fail(cli.BadOutput, "only a part of the message had reached it when ductor was stopped")
	case !left.Alive || left.Input.Closed:
		fail(cli.Crashed, "it ended before the message reached it")
	}
	return s, func() { proc.sessions.Remove(s.id, s) }
}

// note is the state that ductor needs to resume a turn after a restart. It is stored in cli.Mark.Note.
type note struct {
	Session  string   `json:"s"`
	Model    string   `json:"m,omitempty"`
	Length   int      `json:"n"`           // length of the JSON line with the prompt, in bytes
	Answered []string `json:"a,omitempty"` // IDs of the permission requests that a user answered
	Denied   []string `json:"d,omitempty"` // IDs of the requests in Answered that the user denied
	Sent     bool     `json:"t,omitempty"` // the agent has the prompt; set once a user has answered a request
	Name     string   `json:"w,omitempty"`
	// Totals and Spent contain the session's token usage and its cost in US dollars before the turn.
	Totals cli.Usage `json:"u,omitzero"`
	Spent  *float64  `json:"c,omitempty"`
}

// answered reports whether a user answered this request before ductor was restarted.
func (n note) answered(a *ask) bool { return slices.Contains(n.Answered, rpc.Text(a.id)) }

func (n note) String() string {
	raw, err := json.Marshal(n)
	if err != nil { // cannot happen: strings and numbers can always be encoded
		return ""
	}
	return string(raw)
}

const markWait = 5 * time.Second

// noteAnswered stores that the agent has received a user's answer, so that ductor does not ask the user again after a
// restart. If ductor cannot store this, it asks again, and the agent ignores the second answer.
func (t *liveTurn) noteAnswered(d decided) {
	s := t.s
	s.mu.Lock()
	m := t.marked
	t.note.Answered = append(t.note.Answered, rpc.Text(d.ask.id))
	if !d.allow {
		t.note.Denied = append(t.note.Denied, rpc.Text(d.ask.id))
	}
	t.note.Sent = true
	m.Note = t.note.String()
	s.mu.Unlock()
	if m.Turn == "" {
		return
	}
	ctx, cancel := context.WithTimeout(s.process.Life(), markWait)
	defer cancel()
	if err := s.process.Program().Begin(ctx, m); err != nil {
		s.options().Logger.Warn("record that a question was answered", "agent", string(s.options().Agent),
			"turn", string(m.Turn), "err", err)
	}
}
