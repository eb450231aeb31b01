package copilot

import "ductor/cli"

// Shares is the server that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	if p.noServer.Load() {
		return p.acp.Shares(forACP(req))
	}
	key := hubKey(p.opts.Path, serverArgs(req), p.environment(req))
	p.hubs.mu.Lock()
	h := p.hubs.live[key]
	p.hubs.mu.Unlock()
	if h == nil || !h.alive() {
		return 0
	}
	return h.process.PID()
}

var _ cli.Sharer = (*Provider)(nil)
