package gemini

import (
	"strings"
	"testing"

	"ductor/cli/acp"
)

// The input for rules is derived only from text that cannot omit anything.
func TestWhatGeminiAsksToDo(t *testing.T) {
	for _, tc := range []struct {
		wish acp.Wish
		want string
	}{
		{acp.Wish{Tool: "run_shell_command", Kind: "execute", Title: "make", Text: "[current working directory /w] (build it)"}, `{"command":"make"}`},
		{acp.Wish{Tool: "run_shell_command", Kind: "execute", Title: "make", Text: "[in sub] (build it)"}, `{"command":"make","dir_path":"[in sub] (build it)"}`},
		{acp.Wish{Tool: "run_shell_command", Kind: "execute", Title: "make", Text: "[current working directory /w] (build it) [background]"}, `{"command":"make","is_background":true}`},
		{acp.Wish{Tool: "run_shell_command", Kind: "execute", Title: "make"}, `{"command":"make","dir_path":""}`},
		{acp.Wish{Tool: "write_file", Kind: "edit", Title: "Writing to a", Changes: 1}, ""},
		{acp.Wish{Tool: "replace", Kind: "edit", Title: "a: x => y", Changes: 1}, ""},
		{acp.Wish{Tool: "write_file", Kind: "edit", Title: "Writing to a"}, ""},
		{acp.Wish{Tool: "run_shell_command", Kind: "other", Title: "make", Text: "[current working directory /w]"}, ""},
		{acp.Wish{Tool: "mcp_tool", Kind: "other", Title: "make"}, ""},
	} {
		if got := string(inputOf(tc.wish)); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.wish, got, tc.want)
		}
	}
}

// Gemini reports a failed shell command as completed, with the reason in words.
func TestWhyAShellCommandFailed(t *testing.T) {
	for output, want := range map[string]string{
		"Command exited with code: 3":                                                      "",
		"Command cancelled by user.\n\nOutput before cancellation:\nhalf":                  "Command cancelled by user.",
		"Command terminated by signal: 9":                                                  "Command terminated by signal: 9",
		"Blocked: command substitution detected in shell command. Use a pipe.":             "Blocked: command substitution detected in shell command. Use a pipe.",
		"Command failed: spawn ENOENT":                                                     "Command failed: spawn ENOENT",
		"Command was automatically cancelled because it exceeded the timeout of 5 minutes": "Command was automatically cancelled because it exceeded the timeout of 5 minutes",
		"all is well": "",
	} {
		code, why := shellFailure(output)
		if why != want || (code != nil) != strings.HasSuffix(output, ": 3") {
			t.Errorf("%q: code %v, %q", output, code, why)
		}
	}
}

// Gemini's text about its modes is not part of the answer.
func TestNoticesOfModes(t *testing.T) {
	for text, want := range map[string]bool{
		"[MODE_UPDATE] default": true, "[MODE_UPDATE] autoEdit": true, "[MODE_UPDATE] is what it says": false,
		"It says [MODE_UPDATE] default": false, "[MODE_UPDATE] a\nb": false, "": false,
	} {
		if got := isModeNotice(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Gemini names a plan by its file. A model that writes the same text is not trusted.
func TestPlanFile(t *testing.T) {
	for _, tc := range []struct{ id, title, want string }{
		{"exit_plan_mode__1", "Requesting plan approval for: /h/.gemini/tmp/x/plans/a b.md",
			"/h/.gemini/tmp/x/plans/a b.md"},
		{"exit_plan_mode-1", "Requesting plan approval for: plan.md", ""},
		{"exit_plan_mode__1", "Requesting plan approval for: /h/.gemini/tmp/plan.md; id", ""},
		{"exit_plan_mode__1", "Requesting plan approval for: /h/.gemini/tmp/x\n/plan.md", ""},
		{"exit_plan_mode__1", "Requesting plan approval for: /h/.gemini/tmp/x/../../../notes.md", ""},
		{"exit_plan_mode__1", "Requesting plan approval for: /h/notes.md", ""},
		{"run_shell_command__1", "Requesting plan approval for: /h/.gemini/tmp/plan.md", ""},
	} {
		if got := planFile(tc.id, tc.title); got != tc.want {
			t.Errorf("%s %q names %q", tc.id, tc.title, got)
		}
	}
}
