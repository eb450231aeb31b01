package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/roles"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// projectsOf returns the policies of the configured projects, with the real paths of their directories; see realDir. If
// links lead a project to another environment, projectsOf adds a policy for the real path. This policy contains only
// the limits of the project. If the real path is inside another project, the added policy also contains the policy of
// that project.
func projectsOf(cfg config.Config) (all []orchestrator.ProjectPolicy) {
	policy := environment.NewPolicy(cfg)
	for _, name := range slices.Sorted(maps.Keys(cfg.Projects.Named)) {
		p := cfg.Projects.Named[name]
		p.Dir = realDir(policy, orchestrator.ConversationID{}, p.Dir)
		all = append(all, p)
	}
	linked := linkedProjects(cfg)
	names := slices.Collect(maps.Keys(linked))
	slices.SortFunc(names, func(a, b string) int { // outer directories first
		return cmp.Or(len(linked[a])-len(linked[b]), strings.Compare(a, b))
	})
	for _, name := range names {
		limited := limitProject(all, linked[name], cfg.Projects.Named[name])
		all = slices.Insert(all, 0, limited) // if several policies have the same directory, the first one applies
	}
	return all
}

// linkedProjects returns the projects whose directory contains links to another environment. The keys are the names of
// the projects, and the values are the real paths.
func linkedProjects(cfg config.Config) map[string]string {
	policy, linked := environment.NewPolicy(cfg), map[string]string{}
	for name, p := range cfg.Projects.Named {
		real := cli.RealPath(p.Dir)
		if realDir(policy, orchestrator.ConversationID{}, p.Dir) != real {
			linked[name] = real
		}
	}
	return linked
}

// limitProject returns the policy that applies to a directory, with the limits of a project added.
func limitProject(all []orchestrator.ProjectPolicy, dir string,
	limits orchestrator.ProjectPolicy) (p orchestrator.ProjectPolicy) {
	for _, other := range all {
		if cli.Lies(dir, other.Dir) && len(other.Dir) > len(p.Dir) {
			p = other
		}
	}
	if p.Dir != dir {
		p.Dir, p.Context = dir, nil // other.Context contains paths relative to other.Dir
	}
	p.Tools.Denied = slices.Concat(p.Tools.Denied, limits.Tools.Denied)
	if len(p.Tools.Only) == 0 {
		p.Tools.Only = limits.Tools.Only
	}
	p.Bounds = p.Bounds.With(orchestrator.Bounds{MaxTurns: limits.Bounds.MaxTurns, MCP: limits.Bounds.MCP})
	return p
}

func logLinkedProjects(cfg config.Config, log *slog.Logger) {
	for name, real := range linkedProjects(cfg) {
		log.Warn("A link leads the project to another environment. Only the limits of its tools apply there.",
			"project", name, "dir", cfg.Projects.Named[name].Dir, "leads to", real)
	}
}

// configuredList is a list of allowed or denied tools in the configuration.
type configuredList struct {
	key   string
	list  cli.ToolList
	turns int                // maximum number of answers of the model in a turn; 0 means no limit
	agent cli.Agent          // empty means the default agent
	mode  cli.PermissionMode // empty means permissions.mode
}

func listsOf(cfg config.Config) []configuredList {
	all := []configuredList{{key: "permissions", list: cli.ToolList{Denied: cfg.Permissions.DeniedTools}}}
	add := func(key, name string, l cli.ToolList, agent cli.Agent, mode cli.PermissionMode) {
		all = append(all, configuredList{key: key + name, list: l, agent: agent, mode: mode})
	}
	for name, p := range cfg.Projects.Named {
		all = append(all, configuredList{key: "projects.named." + name, list: p.Tools, turns: p.Bounds.MaxTurns})
	}
	for name, r := range cfg.Roles {
		all = append(all, configuredList{key: "roles." + name, list: r.Tools, turns: r.Bounds.MaxTurns, agent: r.Agent})
	}
	task := func(key, name string, r orchestrator.Rights, agent cli.Agent) {
		mode := cmp.Or(r.Mode, orchestrator.AtMostAsk(cfg.Permissions.Mode))
		add(key, name, r.Tools, agent, mode)
	}
	for name, j := range cfg.Jobs {
		task("jobs.", name, j.Rights, j.Agent)
	}
	for name, h := range cfg.Webhooks.Hooks {
		task("webhooks.hooks.", name, h.Rights, h.Agent)
	}
	task("heartbeat", "", cfg.Heartbeat.Rights, "")
	slices.SortFunc(all, func(a, b configuredList) int { return strings.Compare(a.key, b.key) })
	return all
}

// ProblemsOfTools checks whether the agents can obey the configured tool lists, and describes the problems. It assumes
// that each list applies to its configured agent. If a chat uses another agent, the turns report such problems.
func ProblemsOfTools(cfg config.Config, providers []cli.Provider) (problems []string) {
	for _, l := range listsOf(cfg) {
		agent := cmp.Or(l.agent, cfg.Agents.Default)
		i := slices.IndexFunc(providers, func(p cli.Provider) bool { return p.Agent() == agent })
		if i < 0 || l.list.Empty() && l.turns == 0 {
			continue
		}
		req := cli.Request{
			Permission: cmp.Or(l.mode, cfg.Permissions.Mode),
			ToolLists:  []cli.ToolList{{Denied: cfg.Permissions.DeniedTools}, l.list},
			MaxTurns:   l.turns,
		}
		for name := range cfg.MCP.Servers {
			req.Servers = append(req.Servers, cli.ToolServer{Name: name})
		}
		if _, err := tools.Limit(providers[i], req); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", l.key, err))
		}
	}
	return problems
}

// UselessTool is an entry of a list of allowed tools that can never allow a request.
type UselessTool struct {
	Problem string // sentence that contains the setting and the entry
	Fix     string // what the owner should write instead
}

// UselessTools checks all lists of allowed tools, in the configuration and in the files of roles. It returns the
// entries that can never allow a request.
func UselessTools(cfg config.Config) (all []UselessTool) {
	check := func(key string, allowed []string) {
		for _, entry := range allowed {
			if fix := approval.InsteadOf(entry); fix != "" {
				all = append(all, UselessTool{fmt.Sprintf("%s: %q lets nothing through", key, entry), fix})
			}
		}
	}
	check("permissions.allowed_tools", cfg.Permissions.AllowedTools)
	for _, name := range slices.Sorted(maps.Keys(cfg.Projects.Named)) {
		check("projects.named."+name+".allowed_tools", cfg.Projects.Named[name].Bounds.AllowedTools)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Roles)) {
		check("roles."+name+".allowed_tools", cfg.Roles[name].Bounds.AllowedTools)
	}
	files, _ := roles.Files(cfg.RolesDir()) // RoleFiles reports the errors
	for _, name := range slices.Sorted(maps.Keys(files)) {
		check("roles/"+name+".md", files[name].Bounds.AllowedTools)
	}
	return all
}

func logUselessTools(cfg config.Config, log *slog.Logger) {
	for _, useless := range UselessTools(cfg) {
		log.Warn(useless.Problem, "fix", useless.Fix)
	}
}
