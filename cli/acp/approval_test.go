package acp

import (
	"encoding/json"
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
	})
}
