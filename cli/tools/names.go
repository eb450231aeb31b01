package tools

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/internal/nearest"
)

// others lists the names of tools that are not in table. It also contains the tool kinds of the Agent Client Protocol.
// The names are from the versions in test/agents, and from older versions.
func others() []string {
	return []string{
		// Claude
		"Agent", "Artifact", "AskUserQuestion", "CronCreate", "CronDelete", "CronList", "EnterPlanMode",
		"EnterWorktree", "ExitPlanMode", "ExitWorktree",
		"LSP", "ListAgents", "ListMcpResources", "ListMcpResourcesTool", "Projects", "PushNotification",
		"ReadMcpResource", "ReadMcpResourceTool",
		"RemoteTrigger", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "SlashCommand",
		"StructuredOutput", "Task", "TaskCreate", "TaskGet",
		"TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoRead", "TodoWrite", "ToolSearch",
		"WaitForMcpServers", "Workflow",
		// Codex
		"close_agent", "create_goal", "get_goal", "image_generation", "list_mcp_resource_templates",
		"list_mcp_resources", "permissions",
		"read_mcp_resource", "request_permissions", "request_user_input", "resume_agent", "send_input", "spawn_agent",
		"tool_search", "update_goal",
		"update_plan", "wait", "wait_agent",
		// Gemini
		"activate_skill", "complete_task", "enter_plan_mode", "exit_plan_mode", "get_internal_docs", "invoke_agent",
		"save_memory", "update_topic",
		"write_todos",
		// Copilot
		"ask_user", "fetch_copilot_cli_documentation", "list_agents", "list_powershell", "memory", "read_agent",
		"read_powershell", "report_intent",
		"show_file", "skill", "sql", "stop_powershell", "store_memory", "task", "task_complete", "update_todo",
		"write_agent", "write_powershell",
		// the Agent Client Protocol
		"delete", "execute", "fetch", "move", "other", "switch_mode", "think",
	}
}

// KindOf returns the kind of a tool, such as "shell", or "" if the tool has none. name is the tool's name in any agent,
// or its kind in the Agent Client Protocol.
func KindOf(name string) string {
	switch name {
	case "execute":
		return "shell"
	case "fetch":
		return "web"
	}
	r, _ := rowOf(name)
	return r.kind
}

// known returns every name that a list of tools may contain, except the names of MCP servers' tools.
func known() []string {
	all := others()
	for _, r := range table() {
		all = append(all, r.kind)
		for _, own := range r.own {
			all = append(all, own...)
		}
	}
	return all
}

// Known reports whether at least one agent has a tool with this name.
func Known(name string) bool { return slices.Contains(known(), name) }

// mayBeServerTool reports whether the name may be that of an MCP server's tool. ductor does not know such names in
// advance.
func mayBeServerTool(name string) bool {
	return strings.HasPrefix(name, "mcp_") || strings.ContainsAny(name, ".-")
}

// Check returns an error if a name is invalid in a list of tools. A name is valid if at least one agent has a tool with
// this name.
func Check(name string) error {
	server, ofServer := cli.NamedServer(name)
	bare, _, _ := strings.Cut(name, "(")
	switch all := known(); {
	case strings.TrimSpace(name) == "" || strings.ContainsAny(name, ",\n\""):
		return fmt.Errorf("%q is no name of a tool", name)
	case ofServer && server == "" || strings.ToLower(name) == "mcp":
		return errors.New(`name the server as well, such as "mcp:github"`)
	case ofServer, mayBeServerTool(bare), slices.Contains(all, bare):
		return nil
	case slices.Contains(Kinds(), strings.ToLower(bare)):
		return fmt.Errorf("write %q in small letters", strings.ToLower(bare))
	default:
		return fmt.Errorf("no agent has a tool %q%s", bare, didYouMean(bare, all))
	}
}

// didYouMean returns a suggestion to append to an error message, such as `; did you mean "Bash"?`, or "" if no name is
// similar.
func didYouMean(name string, all []string) string {
	slices.Sort(all)
	lower := make([]string, len(all))
	for i, one := range all {
		lower[i] = strings.ToLower(one)
	}
	near, ok := nearest.Of(name, lower)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", all[slices.Index(lower, near)])
}

// WholeServer returns the name of the MCP server in an entry such as "mcp__github" or "mcp__github__*" of a list of
// tools. Such an entry means all tools of the server; only Claude uses this form. For other entries, WholeServer
// returns "".
func WholeServer(name string) string {
	server, ok := strings.CutPrefix(name, "mcp__")
	server = strings.TrimSuffix(server, "__*")
	if !ok || strings.Contains(server, "__") {
		return ""
	}
	return server
}

// CheckList returns the first error in the names of a list.
func CheckList(list cli.ToolList) error {
	for _, name := range list.Denied {
		if err := Check(name); err != nil {
			return err
		}
	}
	for _, name := range list.Only {
		if err := CheckOnly(name); err != nil {
			return err
		}
	}
	return nil
}

// CheckOnly checks a name for cli.ToolList.Only, which contains only whole tools. It returns an error for an unknown
// name, and for a rule about a tool, such as "Bash(git:*)".
func CheckOnly(name string) error {
	if bare, _, rule := strings.Cut(name, "("); rule && Check(name) == nil {
		return fmt.Errorf("%q is a rule about a tool; a list of the only tools takes %q, and approvals decide on each use", name, bare)
	}
	return Check(name)
}
