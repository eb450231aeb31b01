package gemini

import "ductor/cli"

var _ cli.Limited = (*Provider)(nil)

// Cannot says what of a permission mode Gemini does not do; see cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	if mode == cli.OneShot {
		return Permission(permission).Cannot
	}
	return p.live.Cannot(mode, permission)
}
