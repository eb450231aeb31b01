package codex

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
)

// permissions are two settings of Codex: when it asks the user, and what its sandbox allows.
type permissions struct {
	approval string // a value of AskForApproval in the app server's protocol
	sandbox  string
}

// Values of permissions.approval.
const (
	askUntrusted = "untrusted"  // Codex asks before every action that it does not know to be harmless
	askOnRequest = "on-request" // Codex asks before actions that it considers risky
	askNever     = "never"
)

// Values of permissions.sandbox.
const (
	readOnly       = "read-only"
	workspaceWrite = "workspace-write"
	fullAccess     = "danger-full-access"
)

// permissionsOf translates a permission mode to Codex's settings. If no user can answer, Codex gets a read-only sandbox
// in all modes that require approvals. If configuredSandbox is set, Codex gets that sandbox instead of workspaceWrite.
//
// Even if a user can answer, a read-only sandbox does not suffice: Codex runs approved actions inside of the sandbox.
// It repeats a failed command outside of a read-only sandbox only if the command failed within milliseconds.
func permissionsOf(mode cli.PermissionMode, attended bool, configuredSandbox string) permissions {
	m := permissions{approval: askNever, sandbox: readOnly}
	switch mode {
	case cli.Bypass:
		m.sandbox = fullAccess
	case cli.Auto:
		m.sandbox = cmp.Or(configuredSandbox, workspaceWrite)
		if attended {
			m.approval = askOnRequest
		}
	case cli.Plan:
	// In accept-edits, Codex also asks before every edit. A sandbox that allows edits would also allow commands, and
	// edits of hidden files.
	default:
		if attended {
			m.approval, m.sandbox = askUntrusted, cmp.Or(configuredSandbox, workspaceWrite)
		}
	}
	return m
}

// permissionsFor returns Codex's settings for a request. Unlike permissionsOf, it selects a read-only sandbox if the
// request denies edits.
func permissionsFor(req cli.Request, attended bool, configuredSandbox string) permissions {
	m := permissionsOf(req.Permission, attended, configuredSandbox)
	if deniesEdits(req) {
		m.sandbox = readOnly
	}
	return m
}

var (
	_ cli.Limited       = (*Provider)(nil)
	_ cli.ProjectReader = (*Provider)(nil)
)

// Cannot implements cli.Limited; see permissionsOf for the modes.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	once := mode == cli.OneShot
	switch {
	case permission == cli.Bypass:
		return ""
	case permission == cli.Plan:
		return "Codex has no plan mode: it may read, and change nothing"
	case once && permission == cli.Auto:
		return "Codex run once cannot ask: what its sandbox does not let through fails"
	case once:
		return "Codex run once cannot ask: it may read, and change nothing, " +
			"not even in accept-edits or with allowed tools"
	}
	return ""
}

// ProjectFiles implements cli.ProjectReader. Codex uses these files of a project if it trusts the project.
func (p *Provider) ProjectFiles() []string { return []string{".codex/"} }

// trust returns settings that make Codex use or ignore the project's settings. They override the user's configuration.
// Codex needs an entry for each directory from the working directory up to the top of the repository. The map therefore
// contains the working directory and all directories above it.
//
// If the project has no settings, trust returns nil, because an entry "untrusted" would make Codex ignore AGENTS.md,
// too.
func trust(req cli.Request) map[string]trustLevel {
	level := "untrusted"
	switch req.Project {
	case cli.EmptyProject:
		return nil
	case cli.WithProject:
		level = "trusted"
	case cli.WithoutProject:
	}
	projects := map[string]trustLevel{}
	for _, dir := range []string{req.Dir, cli.RealPath(req.Dir)} {
		for ; filepath.IsAbs(dir); dir = filepath.Dir(dir) {
			projects[dir] = trustLevel{level}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return projects
}

// trustLevel is the entry of a directory in the table "projects" of Codex's configuration.
type trustLevel struct {
	Level string `json:"trust_level"`
}

// trustFlag returns the result of trust as command-line arguments. The value is a TOML table. Its strings have the
// syntax of JSON strings.
func trustFlag(req cli.Request) []string {
	projects := trust(req)
	if len(projects) == 0 {
		return nil
	}
	var entries []string
	for dir, t := range projects {
		entries = append(entries, fmt.Sprintf("%s={trust_level=%q}", jsonOf(dir), t.Level))
	}
	slices.Sort(entries)
	return []string{"-c", "projects={" + strings.Join(entries, ",") + "}"}
}

// toolSwitches maps each tool that Codex can disable to the setting that disables it.
func toolSwitches() map[string]string {
	switches := map[string]string{"web_search": `web_search="disabled"`, "view_image": "features.view_image=false"}
	for _, name := range tools.Own(Agent, []string{"shell"}) { // all shell tools share one setting
		switches[name] = "features.shell_tool=false"
	}
	return switches
}

// toolFlags returns command-line arguments that disable the tools that a request denies.
func toolFlags(req cli.Request) []string {
	var settings, flags []string
	switches := toolSwitches()
	for _, name := range req.Tools.Denied {
		if setting := switches[name]; setting != "" && !slices.Contains(settings, setting) {
			settings = append(settings, setting)
			flags = append(flags, "-c", setting)
		}
	}
	return flags
}

// deniesEdits reports whether a request denies Codex's tools for edits. Codex has no setting that disables them. ductor
// then selects a read-only sandbox, in which Codex rejects a patch or asks the user.
func deniesEdits(req cli.Request) bool {
	edits := tools.Own(Agent, []string{"edit"})
	return slices.ContainsFunc(req.Tools.Denied, func(name string) bool { return slices.Contains(edits, name) })
}

var _ cli.ToolHolder = (*Provider)(nil)

// CannotHold implements cli.ToolHolder.
func (p *Provider) CannotHold(req cli.Request) string {
	switches, edits := toolSwitches(), tools.Own(Agent, []string{"edit"})
	unknown := func(name string) bool { return switches[name] == "" && !slices.Contains(edits, name) }
	servers, denied := cli.Servers(req.Tools.Denied)
	switch i := slices.IndexFunc(denied, unknown); {
	case len(req.Tools.Only) > 0:
		return "Codex cannot be told which tools there are, only which not"
	case len(servers) > 0:
		return fmt.Sprintf("Codex cannot be kept from one MCP server; switch %s off in its own configuration", servers[0])
	case i >= 0:
		return fmt.Sprintf("Codex has no tool %s that can be switched off", denied[i])
	case deniesEdits(req) && req.Permission == cli.Bypass:
		return "Codex cannot be kept from edits in bypass"
	}
	return ""
}
