package copilot

import "ductor/cli"

var (
	_ cli.Limited        = (*Provider)(nil)
	_ cli.ToolRestricter = (*Provider)(nil)
)

// RestrictsTools says that Copilot obeys Request.Tools; see cli.ToolRestricter.
func (*Provider) RestrictsTools() {}

// Cannot says what of a permission mode Copilot does not do; see cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	if mode == cli.Live && p.noServer.Load() {
		return p.acp.Cannot(mode, permission)
	}
	return Cannot(mode, permission)
}
