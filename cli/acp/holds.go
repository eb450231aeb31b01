package acp

import (
	"fmt"

	"ductor/cli"
)

// HoldsOf returns how known agents are held to permission modes, by the names of their programs.
func HoldsOf(program string) map[cli.PermissionMode]Holding {
	switch program {
	case "opencode": // version 1.18.33
		return map[cli.PermissionMode]Holding{cli.Plan: openCode("plan", "deny"), cli.Ask: openCode("build", "ask")}
	case "qwen": // version 0.24.4
		return map[cli.PermissionMode]Holding{cli.Plan: {Mode: "plan"}, cli.Ask: {Mode: "default"}}
	}
	return map[cli.PermissionMode]Holding{}
}

// openCodeRules are OpenCode's permission rules, of which the last fitting one counts, without those for edits and
// commands. Agents of a project's own can have rules that allow everything, so only OpenCode's agents work for another.
const openCodeRules = `{"*":"ask","read":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"},` +
	`"glob":"allow","grep":"allow","list":"allow","lsp":"allow","todoread":"allow","todowrite":"allow",` +
	`"question":"allow","plan_enter":"deny","plan_exit":"deny",` +
	`"task":{"*":"deny","general":"allow","explore":"allow"},"edit":%[1]q,"bash":%[1]q}`

// openCode returns how OpenCode is held to a mode. Its own modes alone hold nothing: by default they let commands
// through. A project's settings can have rules for each of OpenCode's agents, which count more than those for all, so
// ductor's rules name each agent too.
func openCode(mode, writing string) Holding {
	rules := fmt.Sprintf(openCodeRules, writing)
	return Holding{Mode: mode, Env: map[string]string{
		"OPENCODE_PERMISSION": rules,
		"OPENCODE_CONFIG_CONTENT": fmt.Sprintf(`{"agent":{"build":{"permission":%[1]s},"plan":{"permission":%[1]s},`+
			`"general":{"permission":%[1]s},"explore":{"permission":%[1]s}}}`, rules),
	}}
}
