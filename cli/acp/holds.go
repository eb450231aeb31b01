package acp

import (
	"fmt"

	"ductor/cli"
)

// HoldsOf returns how known agents are held to permission modes, by the names of their programs. Each was tried with commands that write.
func HoldsOf(program string) map[cli.PermissionMode]Holding {
	switch program {
	case "opencode": // version 1.18.33
		return map[cli.PermissionMode]Holding{cli.Plan: openCode("plan", "deny"), cli.Ask: openCode("build", "ask")}
	case "qwen": // version 0.24.4
		return map[cli.PermissionMode]Holding{cli.Plan: {Mode: "plan"}, cli.Ask: {Mode: "default"}}
	case "cline": // version 3.0.65
		return map[cli.PermissionMode]Holding{
			cli.Plan: {Mode: "plan"}, cli.Ask: {Mode: "act", Option: "auto_approve", Value: "false"},
			cli.Bypass: {Mode: "act", Option: "auto_approve", Value: "true"},
		}
	case "codex-acp": // version 2.6.0
		return map[cli.PermissionMode]Holding{
			cli.Plan: {Mode: "read-only"}, cli.Ask: {Mode: "read-only"}, cli.Auto: {Mode: "agent"}, cli.Bypass: {Mode: "agent-full-access"},
		}
	}
	return map[cli.PermissionMode]Holding{}
}

// openCodeRules are OpenCode's permission rules, of which the last fitting one counts. They are merged with rules of the user's, which stay in
// front if the same key is not among them. So each key is a pattern that no configuration has. Subagents are denied: OpenCode never
// passes their requests on, and waits for the answer without end.
const openCodeRules = `{"?*":"ask","rea?":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"},` +
	`"glo?":"allow","gre?":"allow","lis?":"allow","ls?":"allow","todo*":"allow","questio?":"allow","plan_*":"deny",` +
	`"tas?":"deny","edi?":%[1]q,"bas?":%[1]q}`

// openCode returns how OpenCode is held to a mode. Its own modes alone hold nothing: by default they let commands through. Its modes are
// agents, and an agent's rules count more than those for all. A project's settings would bring programs that change what OpenCode
// asks for, so it does not read them.
func openCode(mode, writing string) Holding {
	rules := fmt.Sprintf(openCodeRules, writing)
	return Holding{Mode: mode, Env: map[string]string{
		"OPENCODE_CONFIG_CONTENT":         fmt.Sprintf(`{"agent":{%q:{"permission":%s}}}`, mode, rules),
		"OPENCODE_DISABLE_PROJECT_CONFIG": "1",
	}}
}
