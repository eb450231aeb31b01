package claude

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

// asks returns the approval for a request.
func asks(tool, input, reason string) cli.ApprovalAsked {
	p := newParser(turn.NewEmitter(agent, time.Now, func(cli.Event) {}), newMemory(), "/srv/proj")
	return p.flow.approval("a", &controlRequest{Tool: tool, Input: json.RawMessage(input), Reason: reason}, json.RawMessage(input))
}

func TestWhatARequestLeavesOut(t *testing.T) {
	for _, c := range []struct{ tool, input, missing string }{
		{"Bash", `{"command":"ls"}`, ""},
		{"Bash", `{"description":"list files"}`, "the command"},
		{toolExitPlan, `{"plan":"1. do it"}`, ""},
		{toolExitPlan, `{"plan":" ","allowedPrompts":[]}`, "the plan"},
		{"mcp__a__restart", `{}`, ""},
	} {
		ev := asks(c.tool, c.input, "")
		if ev.Missing != c.missing || ev.Allowable() != (c.missing == "") {
			t.Errorf("%s %s: %q is missing, allowable: %v", c.tool, c.input, ev.Missing, ev.Allowable())
		}
	}
}

// An approval contains every value of a tool's input.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tool := rapid.SampledFrom([]string{"Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "Task", toolExitPlan, "mcp__ssh__run"}).Draw(rt, "tool")
		input := clitest.Inputs("command", "description", "file_path", "FILE_PATH", "old_string", "new_string", "edits", "content", "plan",
			"allowedPrompts", "dangerouslyDisableSandbox", "cwd", "url", "notebook_path", "new_source").Draw(rt, "input")
		ev := asks(tool, string(input), "")
		if left := clitest.Unshown(input, clitest.Shown(ev), nil); len(left) > 0 {
			rt.Fatalf("%s %s does not tell %q: %+v", tool, input, left, ev)
		}
		if hidden := clitest.Hidden("claude", ev, "/srv/proj"); len(hidden) > 0 {
			rt.Fatalf("%s %s hides %q", tool, input, hidden)
		}
	})
}

// A request is only an edit if neither a field nor the reason contains more.
func TestWhatIsAnEdit(t *testing.T) {
	for _, c := range []struct {
		tool, input, reason string
		want                bool
	}{
		{"Write", `{"file_path":"a","content":"x"}`, "", true},
		{"Write", `{"file_path":"a","content":"x"}`, "it is a sensitive file", false},
		{"Write", `{"file_path":"a","content":"x","mode":511}`, "", false},
		{"Write", `{"content":"x"}`, "", false},
		{"Edit", `{"file_path":"a","old_string":"x","new_string":"y","replace_all":true}`, "", true},
		{"Edit", `{"file_path":"/etc/passwd","FILE_PATH":"a","old_string":"x","new_string":"y"}`, "", false},
		{"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y","replace_all":false}]}`, "", true},
		{"NotebookEdit", `{"notebook_path":"a","new_source":"x","cell_id":"1","cell_type":"code","edit_mode":"replace"}`, "", true},
		{"mcp__x__Write", `{"file_path":"a","content":"x"}`, "", false},
		{"Bash", `{"command":"ls"}`, "", false},
	} {
		if got := asks(c.tool, c.input, c.reason).OnlyEdits(); got != c.want {
			t.Errorf("%s %s is only an edit: %v", c.tool, c.input, got)
		}
	}
}

// Rules decide by the effect of a request.
func TestTheEffectOfARequest(t *testing.T) {
	for _, c := range []struct {
		tool, input, reason, want string
	}{
		{"Bash", `{"command":"ls","timeout":5}`, "", "|ls||routine|exact"},
		{"Bash", `{"command":"ls","description":"look"}`, "", "|ls||explained|exact"},
		{"Bash", `{"command":"ls"}`, "why", "|ls||explained|exact"},
		{"Bash", `{"command":"ls","run_in_background":true}`, "", "|||routine|exact"},
		{"PowerShell", `{"command":"ls"}`, "", "|ls||explained|exact"},
		{"mcp__x__run", `{"command":"ls"}`, "", "|ls|||exact"},
		{"WebFetch", `{"url":"https://a"}`, "", "||||tool"},
	} {
		if got := clitest.EffectLine(asks(c.tool, c.input, c.reason).Effect, "/srv/proj"); got != c.want {
			t.Errorf("%s %s: %s", c.tool, c.input, got)
		}
	}
}

// Claude adds the plan to its request. If the plan came back, Claude would assume an edit by the user.
func TestAnAllowedPlanIsNotSentBack(t *testing.T) {
	for _, tc := range []struct{ tool, input, want string }{
		{toolExitPlan, `{"allowedPrompts":[],"plan":"do it","planFilePath":"/h/.claude/plans/a.md"}`, `{"allowedPrompts":[],"planFilePath":"/h/.claude/plans/a.md"}`},
		{toolExitPlan, `{"plan":"do it"}`, `{"plan":"do it"}`}, // a session without a file needs the plan
		{"Write", `{"plan":"x","planFilePath":"y"}`, `{"plan":"x","planFilePath":"y"}`},
		{toolExitPlan, `[]`, `[]`},
	} {
		if got := strings.TrimSpace(string(unedited(tc.tool, json.RawMessage(tc.input)))); got != tc.want {
			t.Errorf("%s %s is allowed with %s", tc.tool, tc.input, got)
		}
	}
}

// The user need not see Claude's plan file, unless it is elsewhere.
func TestTheFileOfAPlanIsNotShown(t *testing.T) {
	for path, fields := range map[string]int{"/h/.claude/plans/a.md": 0, "/etc/passwd": 1} {
		shown := 0
		for _, f := range asks(toolExitPlan, `{"plan":"do it","planFilePath":"`+path+`"}`, "").Fields {
			if f.Weight != cli.LabelField {
				shown++
			}
		}
		if shown != fields {
			t.Errorf("with %s, %d fields are shown", path, shown)
		}
	}
}

// Claude's text for the model about missing output is not output.
func TestACommandThatPrintedNothingHasNoOutput(t *testing.T) {
	var end cli.ToolEnded
	p := newParser(turn.NewEmitter(agent, time.Now, func(ev cli.Event) {
		if e, ok := ev.(cli.ToolEnded); ok {
			end = e
		}
	}), newMemory(), "/srv/proj")
	p.flow.tools.start("", block{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"true"}`)}, "")
	p.flow.tools.end(block{ToolUseID: "1", Content: json.RawMessage(`[{"type":"text","text":"(Bash completed with no output)"}]`)}, json.RawMessage(`{"interrupted":false}`))
	if end.ID == "" || end.Output != "" || end.ExitCode == nil {
		t.Errorf("it ended with %+v", end)
	}
}

// A request to write a file is an addition until ductor knows whether the file exists. An edit never is.
func TestTheKindOfAProposedChange(t *testing.T) {
	for input, want := range map[string]cli.ChangeKind{
		`{"file_path":"a","content":"x"}`:                            cli.FileAdded,
		`{"file_path":"a","old_string":"x","new_string":"y"}`:        cli.FileUpdated,
		`{"notebook_path":"a.ipynb","new_source":"x","cell_id":"1"}`: cli.FileUpdated,
	} {
		tool := map[cli.ChangeKind]string{cli.FileAdded: "Write", cli.FileUpdated: "Edit"}[want]
		if strings.Contains(input, "notebook") {
			tool = "NotebookEdit"
		}
		if ev := asks(tool, input, ""); len(ev.Changes) != 1 || ev.Changes[0].Kind != want {
			t.Errorf("%s %s: %+v", tool, input, ev.Changes)
		}
	}
}
