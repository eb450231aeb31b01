package config

import (
	"maps"
	"slices"

	"ductor/cli/tools"
)

// checkTools refuses names of tools that mean nothing: a list with such a name would allow, or deny, nothing.
func (c *Config) checkTools(p *problems) {
	check := func(key string, names []string, wrong func(name string) error) {
		for _, name := range names {
			if err := wrong(name); err != nil {
				p.add(key, "%v", err)
			}
		}
	}
	lists := func(key string, l ToolLists) {
		check(key+".tools", l.Tools, tools.CheckOnly)
		check(key+".denied_tools", l.DeniedTools, tools.Check)
	}
	if len(c.Agents.ACP) == 0 { // nobody knows the tools of other agents
		check("permissions.allowed_tools", c.Permissions.AllowedTools, tools.Check)
	}
	check("permissions.denied_tools", c.Permissions.DeniedTools, tools.Check)
	for _, name := range slices.Sorted(maps.Keys(c.Projects.Named)) {
		lists("projects.named."+dotted([]string{name}), c.Projects.Named[name].ToolLists)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Roles)) {
		lists("roles."+dotted([]string{name}), c.Roles[name].ToolLists)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Jobs)) {
		lists("jobs."+dotted([]string{name}), c.Jobs[name].ToolLists)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks.Hooks)) {
		lists("webhooks.hooks."+dotted([]string{name}), c.Webhooks.Hooks[name].ToolLists)
	}
	lists("heartbeat", c.Heartbeat.ToolLists)
}
