package codex

import "ductor/cli"

// Shares is the app server that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	setting, _ := p.settingOf(req)
	p.mu.Lock()
	h := p.servers[setting]
	p.mu.Unlock()
	if h == nil || !isClosed(h.ready) || h.err != nil || !h.alive() {
		return 0
	}
	return h.process.PID()
}

var _ cli.Sharer = (*Provider)(nil)
