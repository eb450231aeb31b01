package claude

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/clitest"
)

// Every value of a tool's input is in its approval.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tool := rapid.SampledFrom([]string{"Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "Task", toolExitPlan, "mcp__ssh__run"}).Draw(rt, "tool")
		input := clitest.Inputs("command", "description", "file_path", "FILE_PATH", "old_string", "new_string", "edits", "content", "plan",
			"allowedPrompts", "dangerouslyDisableSandbox", "cwd", "url", "notebook_path", "new_source").Draw(rt, "input")
		p := newParser(cli.NewEmitter(agent, time.Now, func(cli.Event) {}), newMemory(), "/srv/proj")
		ev := p.approval(request{id: "a", input: input}, &controlRequest{Tool: tool, Input: input})
		if left := clitest.Unshown(input, clitest.Shown(ev), nil); len(left) > 0 {
			rt.Fatalf("%s %s does not tell %q: %+v", tool, input, left, ev)
		}
	})
}
