package gemini

import "ductor/cli"

// Shares is the process that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int { return p.live.Shares(req) }

var _ cli.Sharer = (*Provider)(nil)
