package render

import (
	"ductor/cli"
	"ductor/lang"
)

// ownTools are the texts for ductor's own tools.
func ownTools() map[string]lang.Key {
	return map[string]lang.Key{
		"send_message": "tool.send-message", "send_file": "tool.send-file", "schedule": "tool.schedule",
		"ask_user": "tool.ask-user", "ask_the_user": "tool.ask-user", // as Gemini knows it
		"list_sessions": "tool.list-sessions", "describe_session": "tool.describe-session",
		"search_project_history": "tool.search-project-history", "count_project_tokens": "tool.count-project-tokens",
		"consult_with": "tool.consult-with", "group_think": "tool.group-think", "work_with": "tool.work-with",
	}
}

// ToolName is the name of a tool as users read it: its agent's name of it, or one for all agents if the tool is
// ductor's own or asks the user.
func ToolName(p lang.Printer, name string) string {
	if key, own := ownTools()[cli.OwnTool(name)]; own {
		return p.Text(key)
	}
	switch name { // by which agents ask their user
	case "AskUserQuestion", "ask_user_question", "ask_user", "request_user_input":
		return p.Text("tool.ask-user")
	case "ExitPlanMode", "exit_plan_mode":
		return p.Text("tool.plan")
	}
	return name
}
