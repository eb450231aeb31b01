package copilot

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// adoptLive resumes one turn of an agent process that the previous ductor process left.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	kept, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	s := newLive(p, req)
	s.adopted = kept.(*adopted)
	s.server, s.id, s.state = s.adopted.server, cli.AgentSessionID(s.adopted.mark.Note), idle
	s.model, s.applied = req.Model, applied{model: req.Model, effort: req.Effort, permission: req.Permission}
	return s, nil
}

// adopted is a turn that is being resumed.
type adopted struct {
	server *server
	mark   cli.Mark
	in     *inbox
	asked  bool // its prompt had reached the process
}

// Await implements shared.Server. It keeps the events of a turn until it is resumed.
func (h *server) Await(m cli.Mark, left cli.LeftRun) (kept any, drop func()) {
	id := cli.AgentSessionID(m.Note)
	if id == "" {
		return nil, nil
	}
	// The mark was recorded right before the prompt was written, with no other write in between.
	a := &adopted{server: h, mark: m, in: turn.NewQueue[item](0), asked: left.InputEnd > m.Input || !left.Alive}
	h.turns.Set(id, a.in)
	_ = h.Peer().Expect(sendPrefix+string(m.Turn), replies(a.in)) // fails only with too many turns
	return a, func() {
		h.turns.Remove(id, a.in)
		a.in.Close()
	}
}
