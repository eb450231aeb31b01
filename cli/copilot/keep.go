package copilot

import (
	"context"
	"errors"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
)

var _ cli.Keeper = (*Provider)(nil)

// Keep takes over a server in which no turn runs. Until it returns, a request for a session of its setting waits.
// Sessions that are loaded in it stay as they are until they are resumed.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	if _, rests := left.Rested(); !rests || !strings.HasPrefix(left.Setting, serverKeyPrefix) {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "it is unknown what runs in it")
	}
	unlock, err := p.servers.lock(ctx, left.Setting)
	if err != nil {
		return cli.Kept{}, err
	}
	defer unlock()
	if p.servers.taken(left.Setting) {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "another one took its place")
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, left.OutputEnd)
	if err != nil {
		return cli.Kept{}, cli.StartFailure(Agent, err)
	}
	h := newServer(left.Setting, process, p.opts.Grace, rpc.Options{From: left.OutputEnd})
	h.former = true
	h.peer.Listen()
	if err := p.same(ctx, h); err != nil {
		return cli.Kept{}, errors.Join(err, h.detach())
	}
	p.servers.add(h)
	return cli.Kept{
		PID: process.PID(), Alive: h.alive,
		Close:  func(ctx context.Context) error { return p.giveBack(ctx, h, false) },
		Detach: func() { _ = p.giveBack(context.Background(), h, true) }, // detaching has no error
	}, nil
}

// same is an error unless the process answers and is of the version that is installed.
func (p *Provider) same(ctx context.Context, h *server) error {
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
func (hs *servers) taken(key string) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.live[key]
	return h != nil && h.alive()
}
