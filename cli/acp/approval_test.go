package acp

import (
	"encoding/json"
	"fmt"
	udiff "github.com/aymanbagabas/go-udiff"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

// An approval contains every value of a request, and the input that only an earlier update contained.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := clitest.Inputs("title", "rawInput", "command", "locations", "path", "content", "_meta").Draw(rt, "call")
		earlier := clitest.Inputs("command", "cwd").Draw(rt, "earlier")
		raw := json.RawMessage(`{"sessionId":"s","toolCall":` + string(call) + `}`)
		a := &ask{id: json.RawMessage(`1`), raw: raw}
		_ = json.Unmarshal(raw, &a.params) // as far as it is readable
		out := newReporter(turn.NewEmitter("gemini", time.Now, func(cli.Event) {}), "/srv/proj", Quirks{})
		out.call(toolcall.Call{ID: a.params.ToolCall.ID, Input: earlier})
		a.tool = out.call(a.params.ToolCall)
		ev := a.event("/srv/proj", nil)
		shown := clitest.Shown(ev)
		left := clitest.Unshown(call, shown, nil)
		if len(a.params.ToolCall.Input) == 0 {
			left = append(left, clitest.Unshown(earlier, shown, nil)...)
		}
		if len(left) > 0 {
			rt.Fatalf("%s does not tell %q: %+v", call, left, ev)
		}
		if hidden := clitest.Hidden("acp", ev, "/srv/proj"); len(hidden) > 0 {
			rt.Fatalf("%s hides %q", call, hidden)
		}
	})
}

// If an edit repeats its change, the change on the card covers that only if it is equal. Then the request is only an
// edit; otherwise each differing value is on the card.
func TestLawAnEditTellsEveryFieldThatDiffers(t *testing.T) {
	lines := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,2}`), 0, 8)
	text := func(rt *rapid.T, label string) string {
		return strings.Join(lines.Draw(rt, label), "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(rt, label+" end")
	}
	rapid.Check(t, func(rt *rapid.T) {
		const path = "/srv/proj/a.txt"
		before, after := text(rt, "before"), text(rt, "after")
		old := rapid.SampledFrom(append(strings.Split(before, "\n"), before)).Draw(rt, "old")
		diff, err := udiff.ToUnified(path, path, before, udiff.Lines(before, after), 3)
		if err != nil {
			rt.Fatal(err)
		}
		input := map[string]any{"file_path": path}
		replaces := old != "" && strings.Count(before, old) == 1
		switch rapid.SampledFrom([]string{"content", "diff", "strings"}).Draw(rt, "kind") {
		case "content":
			input["content"] = after
		case "diff":
			input["diff"] = diff
		case "strings":
			if !replaces {
				rt.Skip()
			}
			input["old_string"], input["new_string"] = old, "new"
			after = strings.Replace(before, old, "new", 1)
		}
		if before == after {
			rt.Skip()
		}
		lie := rapid.SampledFrom(append(slices.Sorted(maps.Keys(input)), "", "", "mode")).Draw(rt, "lie")
		if lie != "" {
			input[lie] = fmt.Sprint(input[lie], "another")
		}
		params, err := json.Marshal(map[string]any{"sessionId": "s", "options": []any{map[string]any{"optionId": "o", "kind": "allow_once"}}, "toolCall": map[string]any{"toolCallId": "c", "kind": "edit", "title": path,
			"rawInput": input, "content": []any{map[string]any{"type": "diff", "path": path, "oldText": before, "newText": after}}}})
		if err != nil {
			rt.Fatal(err)
		}
		a := &ask{id: json.RawMessage(`1`), raw: params}
		if err := json.Unmarshal(params, &a.params); err != nil {
			rt.Fatal(err)
		}
		a.tool = newReporter(turn.NewEmitter("gemini", time.Now, func(cli.Event) {}), "/srv/proj", Quirks{}).call(a.params.ToolCall)
		ev := a.event("/srv/proj", nil)
		told := slices.ContainsFunc(ev.Fields, func(f cli.Field) bool {
			return f.Weight == cli.PlainField && f.Name == lie && strings.HasSuffix(f.Value, "another")
		}) || slices.ContainsFunc(ev.Changes, func(c cli.FileChanged) bool { return strings.HasSuffix(c.Path, "another") })
		if lie != "" && (!told || ev.OnlyEdits()) || lie == "" && (!ev.OnlyEdits() || ev.SaysMore()) {
			rt.Fatalf("%q of %s is told: %v; it only edits: %v; %+v", lie, params, told, ev.OnlyEdits(), ev)
		}
	})
}

// A patch of OpenCode lists its files, and repeats all of them in one diff. The whole is an edit if each file is.
func TestAPatchOfSeveralFiles(t *testing.T) {
	patch := func(path, hunk string) string {
		return "Index: " + path + "\n=====\n--- " + path + "\n+++ " + path + "\n" + hunk
	}
	one, two := patch("/srv/proj/a.txt", "@@ -1,1 +1,1 @@\n-x\n+y\n"), patch("/srv/proj/sub/b.txt", "@@ -1,1 +0,0 @@\n-z\n")
	file := func(name, kind, patch string) map[string]any {
		return map[string]any{"filePath": "/srv/proj/" + name, "relativePath": name, "type": kind, "patch": patch, "additions": 1, "deletions": 1}
	}
	diff := func(name, before, after string) map[string]any {
		return map[string]any{"type": "diff", "path": "/srv/proj/" + name, "oldText": before, "newText": after}
	}
	update, remove := file("a.txt", "update", one), file("sub/b.txt", "delete", two)
	updated, removed := diff("a.txt", "x\n", "y\n"), diff("sub/b.txt", "z\n", "")
	for name, c := range map[string]struct {
		files, content []map[string]any
		diff           string
		kinds          []cli.ChangeKind
		whole          bool
	}{
		"one":                 {[]map[string]any{update}, []map[string]any{updated}, one + "\n", []cli.ChangeKind{cli.FileUpdated}, true},
		"one without texts":   {[]map[string]any{update}, nil, one + "\n", []cli.ChangeKind{cli.FileUpdated}, true},
		"two":                 {[]map[string]any{update, remove}, []map[string]any{updated, removed}, one + "\n" + two + "\n", []cli.ChangeKind{cli.FileUpdated, cli.FileDeleted}, true},
		"two, one with texts": {[]map[string]any{update, remove}, []map[string]any{updated}, one + "\n" + two + "\n", []cli.ChangeKind{cli.FileUpdated, cli.FileDeleted}, true},
		"more in the diff":    {[]map[string]any{update}, []map[string]any{updated}, one + two, []cli.ChangeKind{cli.FileUpdated}, false},
		"a move":              {[]map[string]any{file("a.txt", "move", one)}, []map[string]any{updated}, one + "\n", []cli.ChangeKind{cli.FileUpdated}, false},
	} {
		var names []string
		for _, f := range c.files {
			names = append(names, fmt.Sprint(f["relativePath"]))
		}
		params, err := json.Marshal(map[string]any{"sessionId": "s", "options": []any{map[string]any{"optionId": "o", "kind": "allow_once"}}, "toolCall": map[string]any{"toolCallId": "c", "kind": "edit", "content": c.content,
			"rawInput": map[string]any{"filepath": strings.Join(names, ", "), "diff": c.diff, "files": c.files}}})
		if err != nil {
			t.Fatal(err)
		}
		a := &ask{id: json.RawMessage(`1`), raw: params}
		if err := json.Unmarshal(params, &a.params); err != nil {
			t.Fatal(err)
		}
		a.tool = newReporter(turn.NewEmitter("gemini", time.Now, func(cli.Event) {}), "/srv/proj", Quirks{}).call(a.params.ToolCall)
		ev := a.event("/srv/proj", nil)
		var kinds []cli.ChangeKind
		for _, ch := range ev.Changes {
			kinds = append(kinds, ch.Kind)
		}
		if !slices.Equal(kinds, c.kinds) || ev.OnlyEdits() != c.whole || ev.SaysMore() == c.whole {
			t.Errorf("%s: %v, it only edits: %v, it says besides %+v", name, kinds, ev.OnlyEdits(), ev.Fields)
		}
	}
}

// Rules decide by the effect of a request. Only the agent's own shell is one.
func TestTheEffectOfARequest(t *testing.T) {
	for _, c := range []struct {
		name, input, want string
	}{
		{"", `{"command":"ls"}`, "|ls||routine|exact"},
		{"run_shell_command", `{"command":"ls","is_background":false}`, "|ls||routine|exact"},
		{"run_shell_command", `{"command":"ls","is_background":true}`, "|||routine|exact"},
		{"bash", `{"command":"ls","description":"look"}`, "|ls||explained|exact"},
		{"", `{"command":"ls","commands":["ls"]}`, "|ls||routine|exact"},
		{"", `{"command":"ls","commands":["ls","id"]}`, "|||routine|exact"},
		{"mcp_x_run", `{"command":"ls"}`, "|ls|||exact"},
		{"mcp_x_run", `{"url":"x"}`, "||||tool"},
	} {
		raw := json.RawMessage(fmt.Sprintf(`{"toolCall":{"toolCallId":"1","kind":"execute","title":"ls",`+
			`"_meta":{"toolName":%q},"rawInput":%s}}`, c.name, c.input))
		a := &ask{id: json.RawMessage(`1`), raw: raw}
		if err := json.Unmarshal(raw, &a.params); err != nil {
			t.Fatal(err)
		}
		out := turn.NewEmitter("qwen", time.Now, func(cli.Event) {})
		a.tool = newReporter(out, "/w", Quirks{}).call(a.params.ToolCall)
		if got := clitest.EffectLine(a.event("/w", nil).Effect, "/w"); got != c.want {
			t.Errorf("%s %s: %s", c.name, c.input, got)
		}
	}
}

// The card of Qwen Code's plan contains the plan once and no tool name. It also shows a differing plan, or another
// tool.
func TestThePlanOfQwenCode(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		more       bool
	}{{"exit_plan_mode", "the whole plan", false}, {"exit_plan_mode", "another plan", true}, {"rm", "the whole plan", true}} {
		raw := json.RawMessage(fmt.Sprintf(`{"sessionId":"s","toolCall":{"toolCallId":"1","kind":"switch_mode","title":"Plan:","_meta":{"toolName":%q},`+
			`"rawInput":{"plan":%q},"content":[{"type":"content","content":{"type":"text","text":"the whole plan"}}]}}`, c.name, c.plan))
		a := &ask{id: json.RawMessage(`1`), raw: raw}
		if err := json.Unmarshal(raw, &a.params); err != nil {
			t.Fatal(err)
		}
		a.tool = newReporter(turn.NewEmitter("qwen", time.Now, func(cli.Event) {}), "/w", Quirks{}).call(a.params.ToolCall)
		if ev := a.event("/w", nil); ev.Tool != cli.PlanTool || !strings.Contains(ev.Detail, "the whole plan") || ev.SaysMore() != c.more {
			t.Errorf("%s %q: the card of %s says %q, and besides %+v", c.name, c.plan, ev.Tool, ev.Detail, ev.Fields)
		}
	}
}

// Gemini's words about a command are its reason. The note that it continues in the background stays next to the
// command.
func TestACommandInTheBackground(t *testing.T) {
	raw := json.RawMessage(`{"sessionId":"s","toolCall":{"toolCallId":"run_shell_command-1","kind":"execute","title":"make","content":[` +
		`{"type":"content","content":{"type":"text","text":"[current working directory /w] (Build it) [background]"}}]}}`)
	a := &ask{id: json.RawMessage(`1`), raw: raw}
	if err := json.Unmarshal(raw, &a.params); err != nil {
		t.Fatal(err)
	}
	a.tool = newReporter(turn.NewEmitter("gemini", time.Now, func(cli.Event) {}), "/w", Quirks{}).call(a.params.ToolCall)
	if ev := a.event("/w", nil); ev.Detail != "make\n\n[background]" || ev.Reason != "Build it" {
		t.Errorf("the card says %q, because %q", ev.Detail, ev.Reason)
	}
}
