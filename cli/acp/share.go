package acp

import "ductor/cli"

// Shares is the process that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	p.mu.Lock()
	proc := p.processes[p.key(req)]
	p.mu.Unlock()
	if proc == nil {
		return 0
	}
	select {
	case <-proc.ready:
	default:
		return 0
	}
	if proc.failed != nil || !proc.alive() {
		return 0
	}
	return proc.run.PID()
}

var _ cli.Sharer = (*Provider)(nil)
