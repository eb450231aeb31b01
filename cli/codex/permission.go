package codex

import (
	"ductor/cli"
)

// permissions is what Codex may do: when it asks the user, and what its sandbox allows without asking.
type permissions struct {
	approval string // AskForApproval of the app server
	sandbox  string
}

// When Codex asks: for anything that is not known to be harmless, where it sees fit, or never.
const (
	askUntrusted = "untrusted"
	askOnRequest = "on-request"
	askNever     = "never"
)

// The sandboxes.
const (
	readOnly       = "read-only"
	workspaceWrite = "workspace-write"
	fullAccess     = "danger-full-access"
)

// permissionsOf maps a permission mode, for exec and app-server alike. Where no user can be asked, which is so in
// exec and where a turn is not attended, nothing is possible that the mode would ask about. A configured
// sandbox counts where the mode leaves a choice. Codex has no lists of allowed and denied tools.
//
// What the user allows runs inside the sandbox, so it must be one in which it can work: in a read-only one Codex
// tries an allowed command again outside only if it failed within milliseconds.
func permissionsOf(mode cli.PermissionMode, attended bool, configured string) permissions {
	m := permissions{approval: askNever, sandbox: readOnly}
	switch mode {
	case cli.Bypass:
		m.sandbox = fullAccess
	case cli.Auto:
		m.sandbox = or(configured, workspaceWrite)
		if attended {
			m.approval = askOnRequest
		}
	case cli.AcceptEdits:
		m.sandbox = or(configured, workspaceWrite)
		if attended {
			m.approval = askUntrusted
		}
	case cli.Plan:
	default:
		if attended {
			m.approval, m.sandbox = askUntrusted, or(configured, workspaceWrite)
		}
	}
	return m
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

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
