package acp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// adopted is a turn that the previous process started.
type adopted struct {
	mark  cli.Mark
	note  note
	fails *cli.Failure // why it cannot be resumed
	send  bool         // its prompt has not reached the agent
}

// Adopt implements cli.Provider. It resumes a turn that the previous process started. The session accepts no further
// turn.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	kept, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	s := kept.(*session)
	s.workspace = newWorkspace(s.process, req)
	return s, nil
}

// adoption determines whether the prompt reached the agent. Nothing is written between a mark and its prompt.
func adoption(left cli.LeftRun, mark cli.Mark, n note, agent cli.Agent) *adopted {
	a := &adopted{mark: mark, note: n}
	reached := left.InputEnd - mark.Input
	switch {
	case n.Sent || reached >= int64(n.Length):
	case reached > 0:
		a.fails = cli.Failf(cli.BadOutput, agent, "only a part of the message had reached it when ductor was stopped")
	case !left.Alive || left.InputClosed:
		a.fails = cli.Failf(cli.Crashed, agent, "it ended before the message reached it")
	default:
		a.send = true
	}
	return a
}

// Await implements shared.Server. It creates the session of a turn that may be resumed.
func (proc *agentProcess) Await(m cli.Mark, left cli.LeftRun) (kept any, drop func()) {
	var n note
	if json.Unmarshal([]byte(m.Note), &n) != nil || n.Session == "" {
		return nil, nil
	}
	proc.become(n.Name)
	s := &session{
		process: proc, id: cli.AgentSessionID(n.Session), inbox: turn.NewQueue[item](0), phase: phaseRunning,
		offers: offers{model: n.Model}, past: past{totals: n.Totals}, adopted: adoption(left, m, n, proc.options().Agent),
	}
	proc.sessions.Set(s.id, s)
	_ = proc.Peer().Expect(s.promptID(m.Turn), s.replied) // fails only with too many turns
	return s, func() { proc.sessions.Remove(s.id, s) }
}

// resume continues an adopted turn to its end.
func (s *session) resume(ctx context.Context, req cli.Request, out *turn.Emitter) {
	a := s.adopted
	s.adopted = nil
	t := s.newTurn(req, out, a, nil)
	s.name(out)
	s.marked(a.mark, a.note)
	if a.fails != nil {
		out.Pass(cli.CaughtUp{})
		s.stopListening(phaseBroken, false)
		s.process.TurnEnded(ctx, shared.EndOver)
		out.Finish(cli.Result{Err: a.fails})
		return
	}
	t.finish(ctx, t.loop.Run(ctx))
}

// goLive repeats each unanswered question, and sends a prompt that the previous process did not send.
func (t *liveTurn) goLive() {
	t.approvals.Release()
	if !t.resumed.send {
		return
	}
	blocks, err := t.s.blocks(t.req)
	if err != nil {
		t.unsent = err
		return
	}
	t.s.sendPrompt(t.req, blocks, t.resumed.note)
}

// note has the data that the next process needs to resume a turn. It is stored as Mark.Note.
type note struct {
	Session  string   `json:"s"`
	Model    string   `json:"m,omitempty"`
	Length   int      `json:"n"`           // bytes of the line with the prompt
	Answered []string `json:"a,omitempty"` // permission requests that a user answered
	Denied   []string `json:"d,omitempty"` // the denied ones among them
	// Sent reports that the prompt was sent for certain: the mark was written again since.
	Sent bool `json:"t,omitempty"`
	// Name is the agent's own name, and Totals is the session's usage before the turn.
	Name   string    `json:"w,omitempty"`
	Totals cli.Usage `json:"u,omitzero"`
}

// answered reports whether a user has answered a request.
func (n note) answered(a *ask) bool { return slices.Contains(n.Answered, rpc.Text(a.id)) }

func (n note) String() string {
	raw, err := json.Marshal(n)
	if err != nil { // strings and numbers can always be encoded
		return ""
	}
	return string(raw)
}

const markWait = 5 * time.Second

// promptID returns the id of the request with a turn's prompt. It is the same after a restart. A turn without a name
// gets an id from its session.
func (s *session) promptID(turn cli.TurnID) string {
	if turn == "" {
		return "turn-of-" + string(s.id)
	}
	return "turn-" + string(turn)
}

// marked records where the turn starts.
func (s *session) marked(m cli.Mark, n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.marked, s.turn.note = m, n
}

// noteAnswered records that a user's answer was written, so that the next process does not ask again. Without that
// record it asks once more, and the agent ignores a second answer.
func (s *session) noteAnswered(d decided) {
	s.mu.Lock()
	m := s.turn.marked
	s.turn.note.Answered = append(s.turn.note.Answered, rpc.Text(d.ask.id))
	if !d.allow {
		s.turn.note.Denied = append(s.turn.note.Denied, rpc.Text(d.ask.id))
	}
	s.turn.note.Sent = true
	m.Note = s.turn.note.String()
	s.mu.Unlock()
	if m.Turn == "" {
		return
	}
	ctx, cancel := context.WithTimeout(s.process.Life(), markWait)
	defer cancel()
	if err := s.process.Program().Begin(ctx, m); err != nil {
		s.process.options().Logger.Warn("record that a question was answered", "agent", string(s.process.options().Agent),
			"turn", string(m.Turn), "err", err)
	}
}
