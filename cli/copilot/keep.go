package copilot

import (
	"context"
	"strings"

	"ductor/cli"
)

var _ cli.Keeper = (*Provider)(nil)

// Keep takes over a server in which no turn runs. Whoever wants a session of its setting meanwhile waits. Sessions that
// are loaded in it stay as they are until they are resumed.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	if _, rests := left.Rested(); !rests || !strings.HasPrefix(left.Setting, hubKeyMark) {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "nobody knows what runs in it")
	}
	unlock, err := p.hubs.lock(ctx, left.Setting)
	if err != nil {
		return cli.Kept{}, err
	}
	defer unlock()
	if p.hubs.taken(left.Setting) {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "another one took its place")
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, left.OutputEnd)
	if err != nil {
		return cli.Kept{}, cli.StartFailure(Agent, err)
	}
	h := newHub(left.Setting, process, p.opts.Grace, left.OutputEnd, map[cli.AgentSessionID]*slot{}, nil)
	h.former = true
	if err := p.same(ctx, h); err != nil {
		h.detach()
		return cli.Kept{}, err
	}
	p.hubs.add(h)
	return cli.Kept{
		PID: process.PID(), Alive: h.alive,
		Close:  func(ctx context.Context) error { return p.giveBack(ctx, h, false) },
		Detach: func() { _ = p.giveBack(context.Background(), h, true) }, // letting go has no error
	}, nil
}

// same is an error unless the process answers and is of the version that is installed.
func (p *Provider) same(ctx context.Context, h *hub) error {
	was, err := h.connect(ctx)
	if err != nil {
		return err
	}
	if now := p.version(ctx); now != was {
		return cli.Failf(cli.UnknownFailure, Agent, "it is version %s, and %q is installed", was, now)
	}
	return nil
}

// taken says whether there is a process of this key that can take another session.
func (hs *hubs) taken(key string) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.live[key]
	return h != nil && h.alive()
}
