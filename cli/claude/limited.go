package claude

import "ductor/cli"

var (
	_ cli.Limited        = (*Provider)(nil)
	_ cli.ToolRestricter = (*Provider)(nil)
)

// RestrictsTools says that Claude obeys Request.Tools; see cli.ToolRestricter.
func (*Provider) RestrictsTools() {}

// Cannot says what of a permission mode Claude does not do: run once, it cannot ask; see cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	switch {
	case mode != cli.OneShot || permission == cli.Bypass:
		return ""
	case permission == cli.Plan:
		return "Claude run once cannot have its plan approved: answer it with the next message"
	case permission == cli.AcceptEdits:
		return "Claude run once cannot ask: it decides on edits without asking, also of hidden files, and what else needs permission is denied"
	}
	return "Claude run once cannot ask: what needs permission is denied"
}
