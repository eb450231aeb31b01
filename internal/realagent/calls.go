package realagent

import "fmt"

func call(tool, format string, args ...any) string {
	return fmt.Sprintf(`[[call %s args=%q]]`, tool, fmt.Sprintf(format, args...))
}

// Replaces returns the tool call with which a model edits a file in dir: the call replaces old by text. Each agent has
// a different tool for this.
func Replaces(agent, dir, name, old, text string) string {
	path := dir + "/" + name
	switch agent {
	case "claude", "claude-agent-acp":
		return call("Read", `{"file_path":%q}`, path) + call("Edit", `{"file_path":%q,"old_string":%q,"new_string":%q}`, path, old, text)
	case "codex", "codex-acp", "cline":
		return call("apply_patch", `{"input":%q}`, "*** Begin Patch\n*** Update File: "+name+"\n@@\n-"+old+"\n+"+text+"\n*** End Patch\n")
	case "gemini":
		return call("read_file", `{"file_path":%q}`, path) + call("replace", `{"file_path":%q,"old_string":%q,"new_string":%q,"instruction":"replace it"}`, path, old, text)
	case "copilot", "cop":
		return call("view", `{"path":%q}`, path) + call("edit", `{"path":%q,"old_str":%q,"new_str":%q}`, path, old, text)
	case "opencode":
		return call("read", `{"filePath":%q}`, path) + call("edit", `{"filePath":%q,"oldString":%q,"newString":%q}`, path, old, text)
	}
	return call("read_file", `{"file_path":%q}`, path) + call("edit", `{"file_path":%q,"old_string":%q,"new_string":%q}`, path, old, text)
}

// Writes returns the tool call with which a model writes a file in dir. Codex needs a relative name.
func Writes(agent, dir, name, text string) string {
	if agent != "codex" {
		name = dir + "/" + name
	}
	return fmt.Sprintf(`[[write path=%s text=%q]]`, name, text)
}

// Background returns the tool call with which a model starts a command without waiting for the command. It returns ""
// if the agent has no such tool.
func Background(agent, command string) string {
	switch agent {
	case "claude", "claude-agent-acp":
		return call("Bash", `{"command":%q,"description":"Wait","run_in_background":true}`, command)
	case "gemini":
		return call("run_shell_command", `{"command":%q,"is_background":true}`, command)
	case "copilot":
		return call("bash", `{"command":%q,"description":"Wait","mode":"async"}`, command)
	case "qwen":
		return call("run_shell_command", `{"command":%q,"description":"Wait","is_background":true}`, command)
	case "codex":
		return call("exec_command", `{"cmd":%q,"yield_time_ms":250,"sandbox_permissions":"require_escalated","justification":"Wait"}`, command)
	}
	return ""
}

const choices = `{"questions":[{"question":"Which colour?","header":"Colour",%s"options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]}]}`

// Asks returns the model's tool call that asks the user to choose a colour, Red or Blue, or "" if the agent has no such
// tool.
func Asks(agent string) string {
	switch agent {
	case "claude", "claude-agent-acp":
		return call("AskUserQuestion", choices, `"multiSelect":false,`)
	case "copilot":
		return call("ask_user", `{"question":"Which colour?","choices":["Red","Blue"]}`)
	case "codex":
		return call("request_user_input", choices, `"id":"colour",`)
	case "qwen":
		return call("ask_user_question", choices, `"multiSelect":false,`)
	}
	return ""
}

// Plans returns the tool call with which a model shows its plan to the user. The plan in this call is the text "the
// whole plan". Plans returns "" if the agent has no such tool, or stores its plans in a file.
func Plans(agent string) string {
	switch agent {
	case "copilot":
		return call("exit_plan_mode", `{"summary":"the whole plan","actions":["interactive","exit_only"],"recommendedAction":"interactive"}`)
	case "qwen":
		return call("exit_plan_mode", `{"plan":"the whole plan"}`)
	}
	return ""
}

// TooLong returns the error message of a model API for a prompt that is too long. Each agent recognizes a different
// message.
func TooLong(agent string) string {
	switch agent {
	case "claude", "claude-agent-acp":
		return "prompt is too long: 210000 tokens > 200000 maximum"
	case "gemini":
		return "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
	}
	return "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages."
}
