package acp

import "ductor/cli"

var _ cli.Limited = (*Provider)(nil)

// Cannot says what of a permission mode the agent does not do, by the modes it offered in the last session that it
// opened; see cli.Limited.
func (p *Provider) Cannot(_ cli.Mode, permission cli.PermissionMode) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		return ""
	}
	return Permission(permission, p.offered).Cannot
}

// offers notes which modes the agent offers.
func (p *Provider) offers(modes []modeInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened, p.offered = true, nil
	for _, m := range modes {
		p.offered = append(p.offered, m.ID)
	}
}
