package render

import (
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/lang"
)

func kinds() map[string]lang.Key {
	return map[string]lang.Key{
		"shell": "tool.shell", "read": "tool.read", "edit": "tool.edit", "search": "tool.search", "web": "tool.web",
	}
}

// ToolName returns the displayed name of a tool. Agents name common tools differently, but users see the same name for
// all agents. If the tool is not known, ToolName returns name.
func ToolName(p lang.Printer, name string) string {
	if own := cli.OwnToolName(p, name); own != "" {
		return own
	}
	switch name { // agents have different names for the same tool
	case "AskUserQuestion", "ask_user_question", "ask_user", "request_user_input":
		return p.Text("tool.ask-user")
	case "ExitPlanMode", "exit_plan_mode":
		return p.Text("tool.plan")
	case "Task", "Agent", "task", "agent", "invoke_agent", "spawn_agent":
		return p.Text("tool.agent")
	case "TodoWrite", "todo_write", "todowrite", "write_todos", "update_todo", "update_plan":
		return p.Text("tool.todo")
	case "other", "tool": // the agent does not report the name of the tool
		return p.Text("tool.other")
	}
	if key, shared := kinds()[tools.KindOf(name)]; shared {
		return p.Text(key)
	}
	return name
}

// Rule describes a permission rule for users: a command, or a tool and what the tool may do.
func Rule(p lang.Printer, text string) string {
	tool, what, about := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !about || !strings.HasSuffix(text, ")") {
		return text
	}
	below, edits := strings.CutPrefix(what, "any file below ")
	same, exactly := strings.CutPrefix(what, "exactly this: ")
	switch {
	case edits:
		return p.Text("tool.rule-edits", strings.TrimSuffix(below, " that is not hidden"))
	case tools.KindOf(tool) == "shell":
		return what
	case exactly:
		what = same
	}
	return ToolName(p, tool) + ": " + what
}
