package copilot

import "ductor/cli"

// Shares is the server that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	if p.noServer.Load() {
		return p.acp.Shares(forACP(req))
	}
	key := serverKey(p.opts.Path, serverArgs(req), p.environment(req))
	p.servers.mu.Lock()
	h := p.servers.live[key]
	p.servers.mu.Unlock()
	if h == nil || !h.alive() {
		return 0
	}
	return h.process.PID()
}

var _ cli.Sharer = (*Provider)(nil)
