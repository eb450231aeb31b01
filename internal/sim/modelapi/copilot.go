package modelapi

import "strings"

// copilotShell returns the input for Copilot's shell tool. It contains a time limit that no test reaches.
func copilotShell(command string) map[string]any {
	return map[string]any{"command": command, "description": "Run a command", "mode": "sync", "initial_wait": 600}
}

// unwrapCopilot removes the lines that Copilot puts before the user's words: the time and notices. It changes only
// texts that begin with the time.
func unwrapCopilot(text string) string {
	if !strings.HasPrefix(text, "<current_datetime>") {
		return text
	}
	for _, tag := range [...]string{"current_datetime", "tools_changed_notice", "mode_changed_notice"} {
		if !strings.HasPrefix(text, "<"+tag+">") {
			continue
		}
		_, rest, ok := strings.Cut(text, "</"+tag+">")
		if !ok {
			return text
		}
		text = strings.TrimLeft(rest, "\n")
	}
	return strings.TrimPrefix(text, "[[PLAN]] ")
}
