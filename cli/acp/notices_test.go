package acp

import (
	"encoding/json"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/turn"
)

// Copilot's own text is not part of the answer. Text of its model is, even if it looks the same.
func TestNoticesInTheAnswer(t *testing.T) {
	const call = "usage_update"
	for _, c := range []struct {
		name   string
		said   []string // chunks, calls of the model, and tools
		used   int64
		answer string
		failed string
	}{
		{"an answer", []string{call, "Hi ", "there"}, 9, "Hi there", ""},
		{"an error", []string{call, "Error: 400 no"}, 0, "", "400 no"},
		{"an error after a tool", []string{call, "tool", call, "Error: 400 no"}, 9, "", "400 no"},
		{"an answer that is an error's text", []string{call, "Error: it says"}, 9, "Error: it says", ""},
		{"an answer that begins like an error", []string{call, "tool", call, "Error: ", "it says"}, 9, "Error: it says", ""},
		{"errors before a tool", []string{call, "Error: it says", "tool", call, "Done."}, 9, "Error: it says\n\nDone.", ""},
		{"an attempt that failed", []string{call, "half", noticeRetrying, call, "whole"}, 9, "whole", ""},
		{"an attempt behind a tool", []string{call, "a", "tool", call, noticeRetrying, call, "b"}, 9, "a\n\nb", ""},
		{"attempts, and then none", []string{call, "half", noticeRetrying, call, "half", "Error: no"}, 0, "half", "no"},
		{"a tool that was denied", []string{call, "tool", noticeCancelled}, 9, "", ""},
		{"a file that is named", []string{call, "Info: /srv/f.txt", "x"}, 9, "x", ""},
		{"information of the model's", []string{call, "Info: all is well"}, 9, "Info: all is well", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := turn.NewEmitter("a", time.Now, func(cli.Event) {})
			reporter := newReporter(out, "/srv", (&Options{}).quirksOf("Copilot"))
			for _, s := range c.said {
				u := map[string]any{"sessionUpdate": updateMessage, "content": toolcall.Block{Type: "text", Text: s}}
				switch s {
				case call:
					u = map[string]any{"sessionUpdate": call}
				case "tool":
					u = map[string]any{"sessionUpdate": updateTool, "toolCallId": "1", "title": "Run", "status": toolcall.StatusDone}
				}
				said(t, reporter, u)
			}
			failed, _ := reporter.failed(cli.Usage{Output: c.used})
			reporter.sayHeld()
			if out.Answer() != c.answer || failed != c.failed {
				t.Errorf("answer %q, failure %q, want %q, %q", out.Answer(), failed, c.answer, c.failed)
			}
		})
	}
}

// said passes an update to the reporter in the agent's encoding.
func said(t *testing.T, r *reporter, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	var u update
	if err == nil {
		err = json.Unmarshal(raw, &u)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.update(&u)
}

// An unknown agent keeps its text.
func TestTextOfOthersIsText(t *testing.T) {
	out := turn.NewEmitter("a", time.Now, func(cli.Event) {})
	reporter := newReporter(out, "/srv", (&Options{}).quirksOf("another"))
	said(t, reporter, map[string]any{"sessionUpdate": updateMessage, "content": toolcall.Block{Type: "text", Text: "Error: no"}})
	if text, failed := reporter.failed(cli.Usage{}); failed || out.Answer() != "Error: no" {
		t.Errorf("answer %q, failure %q", out.Answer(), text)
	}
}

func TestErrorCodes(t *testing.T) {
	for text, want := range map[string]cli.FailureKind{
		"400 scripted error": cli.Refused,
		"Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401).": cli.NotLoggedIn,
		"429 slow down": cli.LimitReached,
		"4000 things":   cli.UnknownFailure,
	} {
		if got := KindOf(0, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestExitCodeOfAShell(t *testing.T) {
	if code, _ := shellExit("out\n<shellId: 0 completed with exit code 3>"); code == nil || *code != 3 {
		t.Errorf("got %v", code)
	}
	if code, _ := shellExit("exit code 3"); code != nil {
		t.Errorf("got %d", *code)
	}
}

// A tool with the path of a plan asks to leave plan mode.
func TestAPlanInAFile(t *testing.T) {
	quirks := Quirks{Tools: ToolQuirks{PlanFile: func(id, title string) string { return id + title }}}
	plan := newReporter(nil, "/dir", quirks).call(toolcall.Call{ID: "/plan", Title: ".md", ToolKind: "other"})
	if plan.call.ToolKind != toolcall.KindSwitch || plan.planFile != "/plan.md" {
		t.Errorf("%+v", plan)
	}
	quirks.Tools.PlanFile = func(string, string) string { return "" }
	other := newReporter(nil, "/dir", quirks).call(toolcall.Call{ID: "1", ToolKind: "other"})
	if other.call.ToolKind != "other" {
		t.Errorf("%+v", other)
	}
}
