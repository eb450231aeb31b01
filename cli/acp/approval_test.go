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
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

// Every value of a request is in its approval, and so is the input that only an earlier update had.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := clitest.Inputs("title", "rawInput", "command", "locations", "path", "content", "_meta").Draw(rt, "call")
		earlier := clitest.Inputs("command", "cwd").Draw(rt, "earlier")
		raw := json.RawMessage(`{"sessionId":"s","toolCall":` + string(call) + `}`)
		a := &ask{id: json.RawMessage(`1`), raw: raw}
		_ = json.Unmarshal(raw, &a.params) // as far as it can be read
		out := newReporter(turn.NewEmitter("gemini", time.Now, func(cli.Event) {}), "/srv/proj", Quirks{})
		out.call(toolCall{ID: a.params.ToolCall.ID, Input: earlier})
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

// What an edit repeats beside its change is shown by the change only if it says the same. Then the request is an edit and nothing else;
// otherwise each value that differs is on the card.
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
		params, err := json.Marshal(map[string]any{"sessionId": "s", "toolCall": map[string]any{"toolCallId": "c", "kind": "edit", "title": path,
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
		})
		if lie != "" && (!told || ev.OnlyEdits) || lie == "" && (!ev.OnlyEdits || ev.SaysMore()) {
			rt.Fatalf("%q of %s is told: %v; it only edits: %v; %+v", lie, params, told, ev.OnlyEdits, ev)
		}
	})
}

// A piece of a file, as Copilot gives it, does not end without a line break; a new file may.
func TestTheEndOfAPiece(t *testing.T) {
	two, empty := "two", ""
	for want, c := range map[string]toolContent{
		"@@ -1 +1 @@\n-two\n+2\n":                                 {OldText: &two, NewText: "2"},
		"@@ -1 +0,0 @@\n-two\n":                                   {OldText: &two},
		"@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n":       {OldText: &empty, NewText: "x"},
		"@@ -1 +1 @@\n-two\n\\ No newline at end of file\n+two\n": {OldText: &two, NewText: "two\n"},
	} {
		if got := c.diff(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
