package copilot

import (
	"context"

	"ductor/cli"
	"ductor/cli/shared"
)

// adoptLive returns a session for a turn that was running in a live process when ductor was restarted.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	kept, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	return live{kept.(*shared.Session[news])}, nil
}

// Await implements shared.Server.
func (h *server) Await(m cli.Mark, left cli.LeftRun) (kept any, drop func()) {
	s := &session{server: h, id: cli.AgentSessionID(m.Note)}
	if s.id == "" {
		return nil, nil
	}
	s.live = shared.Adopt(&h.provider.live, s, m, left.Reached(m))
	h.Set(s.id, s.live)
	return s.live, func() { h.Remove(s.id, s.live) }
}
