package render

import (
	"testing"

	"ductor/lang"
)

// Tools that ask the user have one name, whichever agent calls them and however.
func TestToolsThatAskTheUserHaveOneName(t *testing.T) {
	for name, want := range map[string]string{
		"AskUserQuestion": "❓ question", "request_user_input": "❓ question", "ask_user_question": "❓ question", "mcp__ductor__ask_user": "❓ question",
		"ExitPlanMode": "🗺 plan", "exit_plan_mode": "🗺 plan", "Bash": "Run", "run_shell_command": "Run", "exec_command": "Run", "execute": "Run", "patch": "Edit", "replace": "Edit", "edit": "Edit", "Read": "Read", "fetch": "Web", "invoke_agent": "Sub-agent", "other": "Tool", "mcp__x__ask_user": "mcp__x__ask_user",
	} {
		if got := ToolName(lang.Printer{}, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestRulesSayWhatTheyAllow(t *testing.T) {
	for rule, want := range map[string]string{
		"run_shell_command(mkdir *)": "mkdir *", "Bash(echo $(id))": "echo $(id)", "shell(ls)": "ls",
		"edit(any file below /w/shop that is not hidden)": "change any file in /w/shop that is not hidden",
		`WebFetch(exactly this: {"url":"https://a.b"})`:   `Web: {"url":"https://a.b"}`,
		"accept-edits": "accept-edits", "mcp__x__y(exactly this: {})": "mcp__x__y: {}",
	} {
		if got := Rule(lang.Printer{}, rule); got != want {
			t.Errorf("%s is %q, want %q", rule, got, want)
		}
	}
}

// Telegram removes spaces at the start of an entity. The first line of a diff stays in its column, and the block has no
// line above it.
func TestADiffThatBeginsWithContext(t *testing.T) {
	for language, want := range map[string]string{"diff": "\u00a0first\n-second", "go": " first\n-second"} {
		if got := CodeBlock(language, " first\n-second"); got.Text != want || got.Entities[0].Offset != 0 {
			t.Errorf("%s: %q from %d", language, got.Text, got.Entities[0].Offset)
		}
	}
}
