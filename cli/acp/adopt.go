package acp

import (
	"context"
	"encoding/json"
	"time"

	"ductor/cli"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// adopted is a turn that the previous process began.
type adopted struct {
	mark  cli.Mark
	note  note
	fails *cli.Failure // why it cannot be resumed
	send  bool         // its prompt has not reached the agent
}

// Adopt resumes a turn that the previous process began; see cli.Provider. The session takes no further turn.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	agent := p.opts.Agent
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, agent, "it does not work in the background")
	}
	mark, n, ok := markOf(left, req.Turn)
	if !ok {
		return nil, cli.Failf(cli.UnknownFailure, agent, "what is left of it does not say where the turn began")
	}
	proc, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, cli.AsFailure(agent, err)
	}
	s := proc.awaited[req.Turn]
	s.workspace = newWorkspace(proc, req)
	s.adopted = adoption(left, mark, n, agent)
	return s, nil
}

// markOf finds the mark of a turn.
func markOf(left cli.LeftRun, turn cli.TurnID) (cli.Mark, note, bool) {
	for _, m := range left.Marks {
		if m.Turn != turn {
			continue
		}
		if n, ok := readNote(m); ok {
			return m, n, true
		}
	}
	return cli.Mark{}, note{}, false
}

func readNote(m cli.Mark) (note, bool) {
	var n note
	return n, json.Unmarshal([]byte(m.Note), &n) == nil && n.Session != ""
}

// adoption says whether the prompt reached the agent. Nothing is written between a mark and its prompt.
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

// Await makes the session of a turn that may be resumed; see shared.Server.
func (proc *agentProcess) Await(m cli.Mark, _ cli.LeftRun) (drop func(), ok bool) {
	n, ok := readNote(m)
	if !ok {
		return nil, false
	}
	proc.quirks = proc.opts.Quirks.of(n.Name)
	s := &session{
		process: proc, id: cli.AgentSessionID(n.Session), inbox: turn.NewQueue[item](0), phase: phaseRunning,
		offers: offers{model: n.Model}, totals: n.Totals, turn: turnState{asks: map[cli.ApprovalID]*ask{}},
	}
	proc.awaited[m.Turn] = s
	proc.sessions.Set(s.id, s)
	_ = s.expect(m.Turn) // fails only of too many turns
	return func() { proc.sessions.Remove(s.id, s) }, true
}

// resume takes an adopted turn to its end.
func (s *session) resume(ctx context.Context, req cli.Request, out *turn.Emitter) {
	a := s.adopted
	s.adopted = nil
	t := s.newTurn(ctx, req, out)
	t.from, t.at = a.mark.Output, a.mark.Output
	t.replaying, t.answered = true, map[string]bool{}
	for _, id := range a.note.Answered {
		t.answered[id] = true
	}
	out.Past(t.clock)
	s.name(out)
	s.mu.Lock()
	s.turn.marked, s.turn.note = a.mark, a.note
	s.mu.Unlock()
	switch {
	case a.fails != nil:
		out.Pass(cli.CaughtUp{})
		s.stopListening(phaseBroken)
		s.process.TurnEnded(ctx, shared.EndOver)
		out.Finish(cli.Result{Err: a.fails})
		return
	case a.send:
		t.send = func() error { return s.askNow(req) }
	}
	t.run()
}

// askNow sends a prompt that the previous process did not send.
func (s *session) askNow(req cli.Request) error {
	blocks, err := s.blocks(req)
	if err != nil {
		return err
	}
	s.mu.Lock()
	n := s.turn.note
	s.mu.Unlock()
	s.ask(req, blocks, n)
	return nil
}

// clock is the time of the event at hand: a past one while the output is replayed.
func (t *liveTurn) clock() time.Time {
	if t.replaying {
		if at := t.s.process.Program().When(max(t.at-1, 0)); !at.IsZero() {
			return at
		}
	}
	return t.s.process.opts.Now()
}

// caughtUp ends the replay, and asks each question again that has no answer yet.
func (t *liveTurn) caughtUp() {
	if !t.replaying {
		return
	}
	t.replaying = false
	t.out.Pass(cli.CaughtUp{})
	open := t.open
	t.open = nil
	for _, a := range open {
		if a.tool.phase != toolEnded {
			t.put(a)
		}
	}
	if t.send != nil {
		t.sendErr = t.send()
		t.send = nil
	}
}
