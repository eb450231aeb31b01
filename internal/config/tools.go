package config

import (
	"reflect"

	"ductor/cli/tools"
)

// checkTools rejects names of tools that mean nothing. A list with such a name would neither allow nor deny anything.
func (c *Config) checkTools(p *problems) {
	check := func(key string, names []string, wrong func(name string) error) {
		for _, name := range names {
			if err := wrong(name); err != nil {
				p.add(key, "%v", err)
			}
		}
	}
	if len(c.Agents.ACP) == 0 { // the tools of other agents are unknown
		check("permissions.allowed_tools", c.Permissions.AllowedTools, tools.Check)
	}
	check("permissions.denied_tools", c.Permissions.DeniedTools, tools.Check)
	visit(setting{value: reflect.ValueOf(*c)}, func(s setting) {
		if lists, ok := s.value.Interface().(ToolLists); ok {
			check(s.key+".tools", lists.Tools, tools.CheckOnly)
			check(s.key+".denied_tools", lists.DeniedTools, tools.Check)
		}
	})
}
