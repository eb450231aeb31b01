package copilot

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// adoptLive resumes one turn of an agent process that the previous ductor process left.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "it does not work in the background")
	}
	mark, ok := left.Mark(req.Turn)
	if !ok || mark.Note == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "the process does not know this turn")
	}
	h, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	s := newLive(p, req)
	s.server, s.id = h, cli.AgentSessionID(mark.Note)
	s.model, s.applied = req.Model, applied{model: req.Model, effort: req.Effort, permission: req.Permission}
	s.state = idle
	// The mark was recorded right before the prompt was written, and nothing else is written in between.
	s.adopted = &adopted{mark: mark, asked: left.InputEnd > mark.Input || !left.Alive}
	return s, nil
}

// adopted is a turn that is resumed.
type adopted struct {
	mark  cli.Mark
	asked bool // its prompt had reached the process
}

// Await keeps what comes for a turn until it is resumed; see shared.Server.
func (h *server) Await(m cli.Mark, _ cli.LeftRun) (drop func(), ok bool) {
	id := cli.AgentSessionID(m.Note)
	if id == "" {
		return nil, false
	}
	b := turn.NewQueue[item](0)
	h.awaited[m.Turn] = b
	h.turns.Set(id, b)
	_ = h.expect(string(m.Turn), b) // fails only of too many turns
	return func() {
		h.turns.Remove(id, b)
		b.Close()
	}, true
}
