package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/acp/workspace"
	"ductor/cli/clitest"
	"ductor/cli/turn"
	"ductor/internal/sim/hostile"
)

// Whatever updates come, the reporter fulfils the contract of events.
func FuzzReporter(f *testing.F) {
	f.Add([]byte(updates))
	f.Fuzz(func(t *testing.T, raw []byte) { clitest.Keeps(t, readUpdates(raw)) })
}

const updates = `{"sessionUpdate":"tool_call","toolCallId":"a","title":"x","kind":"edit","content":[{"type":"diff","path":"/d/a","newText":"y"}]}` + "\n" +
	`{"sessionUpdate":"tool_call_update","toolCallId":"a","rawInput":{"a":1},"title":"z"}` + "\n" +
	`{"sessionUpdate":"served","toolCallId":"1","status":"completed","kind":"edit","title":"/d/a"}` + "\n" +
	`{"sessionUpdate":"served","toolCallId":"2","kind":"execute","currentModeId":"t"}` + "\n" +
	`{"sessionUpdate":"served","currentModeId":"t"}` + "\n" +
	`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed",` +
	`"content":[{"type":"terminal","terminalId":"t"}]}` + "\n" +
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}` + "\n" +
	`{"sessionUpdate":"plan","entries":[{"content":"x","status":"completed"}]}`

// readUpdates returns the events of updates.
func readUpdates(raw []byte) (events []cli.Event) {
	out := turn.NewEmitter(testAgent, func() time.Time { return time.Unix(0, 0) }, func(ev cli.Event) { events = append(events, ev) })
	out.Session("s", "m")
	reporter := newReporter(out, "/d", Quirks{})
	for line := range bytes.Lines(raw) {
		var u update
		switch {
		case json.Unmarshal(line, &u) != nil:
		case u.Kind == "served" && u.ID != "":
			n := served{call: u.Call, terminal: u.ModeID, change: &cli.FileChanged{Path: u.Title, Diff: u.Title}}
			n.call.ID, n.call.Locations = servedPrefix+u.ID, append(u.Locations, toolcall.Location{Path: u.Title})
			if u.Status != "" {
				n.end = &cli.ToolEnded{Output: u.Title}
			}
			reporter.serve(&n)
		case u.Kind == "served":
			reporter.serve(&served{terminal: u.ModeID, end: &cli.ToolEnded{}})
		default:
			reporter.update(&u)
		}
	}
	out.Finish(cli.Result{})
	return events
}

// The work for updates is proportional to their number, even if all are about different tools.
func TestTheWorkOverUpdatesIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Lines([][]byte{[]byte(updates)}), func(text string) { readUpdates([]byte(text)) })
}

// After its stream broke, Gemini repeats the start of a message, once or more often. It does not report that, but
// pauses before. Text that a model repeats without a pause stays.
func TestAMessageThatIsSaidAgain(t *testing.T) {
	const long, pause = "The first half of an answer. ", ""
	for _, c := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"again and further", []string{long, pause, "The first ", "half of an answer. And", " more."}, long + "And more."},
		{"twice", []string{long, pause, long, pause, long[:9], long[9:], "more"}, long + "more"},
		{"again in vain", []string{long, pause, long[:9], pause, long[:12], long[12:], "more"}, long + "more"},
		{"again from a shorter beginning", []string{"The", pause, long, "more"}, long + "more"},
		{"words like those at the beginning", []string{long, pause, "The first", " word is The."}, long + "The first word is The."},
		{"a pause within such words", []string{long, pause, "The first", pause, " word."}, long + "The first word."},
		{"words at the end", []string{long, pause, "The first"}, long + "The first"},
		{"a short message", []string{"ha ", pause, "ha ", "ha"}, "ha ha"},
		{"equal lines", []string{"- the same line of text\n", "- the same line of text\n", "- the same line of text\n"}, strings.Repeat("- the same line of text\n", 3)},
		{"equal lines after a pause", []string{long, pause, "x", long, long}, long + "x" + long + long},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(1, 0)
			out := turn.NewEmitter(testAgent, func() time.Time { return now }, func(cli.Event) {})
			r := newReporter(out, "/d", Quirks{})
			for _, p := range c.pieces {
				if p == pause {
					now = now.Add(time.Second)
					continue
				}
				r.say("", p)
			}
			r.emitHeldRepeat()
			if got := out.Answer(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Text after a call is a paragraph of its own, even in the same message.
func TestACallPartsParagraphs(t *testing.T) {
	for _, id := range []string{"", "message-1"} {
		out := turn.NewEmitter(testAgent, time.Now, func(cli.Event) {})
		r := newReporter(out, "/d", Quirks{})
		r.say(id, "Calling ")
		r.say(id, "a tool.")
		r.tool(toolcall.Call{ID: "1", ToolKind: toolcall.KindRun, Status: toolcall.StatusDone})
		r.say(id, "Tool call finished.")
		if got := out.Answer(); got != "Calling a tool.\n\nTool call finished." {
			t.Errorf("%q", got)
		}
	}
}

// OpenCode and Qwen Code name a tool before its input exists. Its line waits for the input, so that it contains the
// command.
func TestAToolIsShownWithItsInput(t *testing.T) {
	var began []string
	out := turn.NewEmitter(testAgent, func() time.Time { return time.Unix(1, 0) }, func(ev cli.Event) {
		if started, ok := ev.(cli.ToolStarted); ok {
			began = append(began, started.Title)
		}
	})
	r := newReporter(out, "/d", Quirks{})
	r.tool(toolcall.Call{
		ID: "1", ToolKind: toolcall.KindRun, Title: "bash", Status: toolcall.StatusPending,
		Input: json.RawMessage(`{"cwd":"/d"}`),
	})
	r.tool(toolcall.Call{ID: "1", Status: "in_progress", Input: json.RawMessage(`{"command":"mkdir one"}`)})
	r.tool(toolcall.Call{
		ID: "2", ToolKind: toolcall.KindThink, Title: "think", Status: toolcall.StatusPending,
		Input: json.RawMessage(`{}`),
	})
	r.tool(toolcall.Call{ID: "2", Status: toolcall.StatusDone})
	r.tool(toolcall.Call{
		ID: "3", ToolKind: toolcall.KindEdit, Title: "write", Status: toolcall.StatusPending,
		Input: json.RawMessage(`{}`),
	})
	r.tool(toolcall.Call{
		ID: "3", ToolKind: toolcall.KindEdit, Title: "write", Status: "in_progress",
		Input: json.RawMessage(`{"filePath":"/d/a.txt"}`), Locations: []toolcall.Location{{Path: "/d/a.txt"}},
	})
	if !slices.Equal(began, []string{"mkdir one", "think", "a.txt"}) {
		t.Errorf("the lines say %q", began)
	}
}

// Some models number the calls of each answer from zero. A call with the ID of an ended one is another tool, even if it
// does the same; a repeated announcement is none.
func TestAToolWithTheIDOfAnEndedOne(t *testing.T) {
	const first = `"toolCallId":"0","kind":"execute","title":"ls","rawInput":{"command":"ls"}`
	for name, c := range map[string]struct {
		ended, then string // updates
		want        []string
	}{
		"another command": {`"status":"completed"`, `"toolCallId":"0","title":"pwd","rawInput":{"command":"pwd"}`,
			[]string{"0 ls", "0#2 pwd"}},
		"the same command": {`"status":"completed"`, first + `,"status":"in_progress"`, []string{"0 ls", "0#2 ls"}},
		"without a status": {`"status":"completed"`, first, []string{"0 ls", "0#2 ls"}},
		"another that failed": {`"status":"failed"`, `"toolCallId":"0","kind":"read","title":"a.txt","status":"failed"`,
			[]string{"0 ls", "0#2 a.txt"}},
		"announced again":      {`"status":"completed"`, first + `,"status":"completed"`, []string{"0 ls"}},
		"announced late":       {`"status":"failed"`, first + `,"status":"pending"`, []string{"0 ls"}},
		"while the first runs": {`"status":"in_progress"`, first + `,"status":"in_progress"`, []string{"0 ls"}},
	} {
		t.Run(name, func(t *testing.T) {
			var shown []string
			for _, ev := range readUpdates([]byte(`{"sessionUpdate":"tool_call",` + first + "}\n" +
				`{"sessionUpdate":"tool_call_update","toolCallId":"0",` + c.ended + "}\n" +
				`{"sessionUpdate":"tool_call",` + c.then + "}\n" +
				`{"sessionUpdate":"tool_call_update","toolCallId":"0","status":"completed"}`)) {
				if ev, ok := ev.(cli.ToolStarted); ok {
					shown = append(shown, string(ev.ID)+" "+ev.Title)
				}
			}
			if !slices.Equal(shown, c.want) {
				t.Errorf("the tools are %q, want %q", shown, c.want)
			}
		})
	}
}

// A denied call is one tool, also if its announcement comes after its request.
func TestADeniedToolIsAnnouncedLate(t *testing.T) {
	var shown []cli.ToolID
	out := turn.NewEmitter(testAgent, time.Now, func(ev cli.Event) {
		if ev, ok := ev.(cli.ToolStarted); ok {
			shown = append(shown, ev.ID)
		}
	})
	r := newReporter(out, "/d", Quirks{})
	call := toolcall.Call{ID: "0", ToolKind: toolcall.KindRun, Title: "ls", Input: json.RawMessage(`{"command":"ls"}`)}
	r.deny(r.call(call), "it is denied")
	call.Status = toolcall.StatusPending
	r.update(&update{Kind: updateTool, Call: call})
	if !slices.Equal(shown, []cli.ToolID{"0"}) {
		t.Errorf("the tools are %q", shown)
	}
	call.Title, call.Input = "pwd", json.RawMessage(`{"command":"pwd"}`)
	r.update(&update{Kind: updateTool, Call: call})
	if !slices.Equal(shown, []cli.ToolID{"0", "0#2"}) {
		t.Errorf("after another call, the tools are %q", shown)
	}
}

// The adapters of Codex and Claude send the output of a command in pieces, beside the protocol, and how it ended.
func TestACommandInATerminalOfTheAgent(t *testing.T) {
	tool := tool{}
	for _, meta := range []string{
		`{"terminal_info":{"terminal_id":"1"}}`, `{"terminal_output_delta":{"data":"of the ","terminal_id":"1"}}`,
		`{"terminal_output_delta":{"data":"tool"},"terminal_exit":{"exit_code":3,"signal":null}}`, `[]`,
	} {
		tool.merge(toolcall.Call{
			ToolKind: toolcall.KindRun, Content: toolcall.Contents{{Type: "terminal"}}, Meta: json.RawMessage(meta),
		}, nil)
	}
	got := tool.over(toolcall.StatusFailed, nil)
	if got.Output != "of the tool" || got.ExitCode == nil || *got.ExitCode != 3 {
		t.Errorf("it ended as %+v", got)
	}
	much := `{"terminal_output_delta":{"data":"` + strings.Repeat("é", workspace.MaxOutput) + `"}}`
	tool.merge(toolcall.Call{Meta: json.RawMessage(much)}, nil)
	got = tool.over(toolcall.StatusFailed, nil)
	if len(got.Output) > workspace.MaxOutput || !utf8.ValidString(got.Output) {
		t.Errorf("%d bytes are kept", len(got.Output))
	}
}

// A command has the exit code that its agent sends, wherever that is. A command without one may have failed.
func TestHowACommandEnded(t *testing.T) {
	three := 3
	for _, c := range []struct {
		output string
		want   cli.ToolEnded
	}{
		{`{"output":"out","metadata":{"exit":3}}`, cli.ToolEnded{Output: "out", ExitCode: &three}},
		{`{"stdout":"out","exit_code":3}`, cli.ToolEnded{Output: "out", ExitCode: &three}},
		{`{"output":"out"}`, cli.ToolEnded{Output: "out", Err: cli.ToolUntold}},
		{`"out"`, cli.ToolEnded{Output: "out", Err: cli.ToolUntold}},
	} {
		tool := tool{call: toolcall.Call{ToolKind: toolcall.KindRun, Output: json.RawMessage(c.output)}}
		got := tool.over(toolcall.StatusDone, nil)
		if got.Output != c.want.Output || got.Err != c.want.Err || (got.ExitCode == nil) != (c.want.ExitCode == nil) || got.Failed() != (c.want.ExitCode != nil) {
			t.Errorf("%s: %+v", c.output, got)
		}
	}
}
