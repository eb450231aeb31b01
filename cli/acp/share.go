package acp

import "ductor/cli"

// Shares is the process that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	p.mu.Lock()
	h := p.hosts[p.key(req)]
	p.mu.Unlock()
	if h == nil {
		return 0
	}
	select {
	case <-h.ready:
	default:
		return 0
	}
	if h.failed != nil || !h.alive() {
		return 0
	}
	return h.process.PID()
}

var _ cli.Sharer = (*Provider)(nil)
