package codex

import "ductor/cli"

var _ cli.Limited = (*Provider)(nil)

// Cannot says what of a permission mode Codex does not do; see permissionsOf and cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	once := mode == cli.OneShot
	switch {
	case permission == cli.Bypass:
		return ""
	case permission == cli.Plan:
		return "Codex has no plan mode: it may read, and change nothing"
	case once && permission == cli.AcceptEdits:
		return "Codex run once cannot ask: commands run inside its sandbox without a question"
	case once && permission == cli.Auto:
		return "Codex run once cannot ask: what its sandbox does not let through fails"
	case once:
		return "Codex run once cannot ask: it may read, and change nothing"
	}
	return ""
}
