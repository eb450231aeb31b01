package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/internal/config"
	"ductor/orchestrator"
)

func toolList(l config.ToolLists) cli.ToolList {
	return cli.ToolList{Only: l.Tools, Denied: l.DeniedTools}
}

func projectsOf(cfg config.Config) (all []orchestrator.ProjectPolicy) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Projects.Named)) {
		p := cfg.Projects.Named[name]
		all = append(all, orchestrator.ProjectPolicy{Dir: p.Dir, Context: p.Context, Tools: toolList(p.ToolLists)})
	}
	return all
}

// configuredList is a list of tools of the configuration, and the agent that it limits.
type configuredList struct {
	key   string
	list  cli.ToolList
	agent string // empty: the default one
	mode  string // empty: that of permissions.mode
}

func listsOf(cfg config.Config) []configuredList {
	all := []configuredList{{key: "permissions", list: cli.ToolList{Denied: cfg.Permissions.DeniedTools}}}
	add := func(key, name string, l config.ToolLists, agent, mode string) {
		all = append(all, configuredList{key + name, toolList(l), agent, mode})
	}
	for name, p := range cfg.Projects.Named {
		add("projects.named.", name, p.ToolLists, "", "")
	}
	for name, r := range cfg.Roles {
		add("roles.", name, r.ToolLists, r.Agent, "")
	}
	task := func(key, name string, r config.Rights, agent string) {
		mode := r.Permission
		if mode == "" {
			mode = string(orchestrator.AtMostAsk(cli.PermissionMode(cfg.Permissions.Mode)))
		}
		add(key, name, r.ToolLists, agent, mode)
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

// ProblemsOfTools returns the problems of configured lists of tools that their agent cannot obey. A chat may choose
// another agent. Its turns then report the problems.
func ProblemsOfTools(cfg config.Config, providers []cli.Provider) (problems []string) {
	for _, l := range listsOf(cfg) {
		agent := cli.Agent(cmp.Or(l.agent, cfg.Agents.Default))
		i := slices.IndexFunc(providers, func(p cli.Provider) bool { return p.Agent() == agent })
		if i < 0 || l.list.Empty() {
			continue
		}
		req := cli.Request{
			Permission: cli.PermissionMode(cmp.Or(l.mode, cfg.Permissions.Mode)),
			ToolLists:  []cli.ToolList{{Denied: cfg.Permissions.DeniedTools}, l.list},
		}
		if _, err := tools.Limit(providers[i], req); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", l.key, err))
		}
	}
	return problems
}
