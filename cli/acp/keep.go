package acp

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
)

var _ cli.Keeper = (*Provider)(nil)

// errNotKept says that a process of an earlier ductor is not kept: another one may be started.
var errNotKept = errors.New("the process that was left is not kept")

// Keep takes over a process in which no turn runs. It is not greeted again, for the protocol has that done once: what it
// said of itself is in its note. Its sessions are loaded when they are gone on with. An agent of which Options.Version
// says nothing is not kept.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	agent := p.opts.Agent
	raw, rests := left.Rested()
	var note restNote
	switch {
	case !rests || json.Unmarshal([]byte(raw), &note) != nil || note.Hello.ProtocolVersion != protocolVersion:
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, agent, "nobody knows what runs in it")
	case p.opts.Version == nil:
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, agent, "nobody knows which version of it is installed")
	}
	h := p.reserve(left.Setting)
	if h == nil {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, agent, "another one took its place")
	}
	h.inherit(ctx, left, note.Hello)
	if h.failed != nil {
		return cli.Kept{}, h.failed
	}
	return cli.Kept{
		PID: h.process.PID(), Alive: h.alive,
		Close:  func(ctx context.Context) error { return h.leave(ctx, parting{}) },
		Detach: func() { _ = h.leave(context.Background(), parting{detached: true}) }, // letting go has no error
	}, nil
}

// reserve makes the host of a process that is to be kept, with one user; nil if there is another one.
func (p *Provider) reserve(key string) *host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts[key] != nil {
		return nil
	}
	h := newHost(p, key)
	p.hosts[key] = h
	return h
}

// inherit attaches at the end of what the process said.
func (h *host) inherit(ctx context.Context, left cli.LeftRun, hello initialized) {
	defer close(h.ready)
	o := h.provider.opts
	fail := func(f *cli.Failure) {
		f.Cause = errors.Join(errNotKept, f.Cause)
		h.failed = f
		h.taint()
		h.end()
		close(h.pumped)
	}
	if now := o.Version(ctx); now != hello.AgentInfo.Version {
		fail(cli.Failf(cli.UnknownFailure, o.Agent, "it is version %s, and %q is installed", hello.AgentInfo.Version, now))
		return
	}
	process, err := o.Launcher.Attach(ctx, left.Run, left.OutputEnd)
	if err != nil {
		fail(cli.AsFailure(o.Agent, err))
		return
	}
	h.hello, h.caps, h.quirks = hello, hello.Capabilities, o.Quirks.of(hello.AgentInfo.Name)
	h.talk(process, left.OutputEnd, -1)
}
