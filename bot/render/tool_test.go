package render

import (
	"testing"

	"ductor/lang"
)

// What asks the user has one name, whichever agent calls it and however.
func TestToolsThatAskTheUserHaveOneName(t *testing.T) {
	for name, want := range map[string]string{
		"AskUserQuestion": "❓ question", "request_user_input": "❓ question", "ask_user_question": "❓ question", "mcp__ductor__ask_user": "❓ question",
		"ExitPlanMode": "🗺 plan", "exit_plan_mode": "🗺 plan", "Bash": "Bash", "mcp__x__ask_user": "mcp__x__ask_user",
	} {
		if got := ToolName(lang.Printer{}, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
