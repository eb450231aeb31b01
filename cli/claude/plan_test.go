package claude

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/turn"
)

// The plan is the result of tools for single steps, or of one that replaces it as a whole. The tools are not shown.
func TestPlan(t *testing.T) {
	var told []cli.PlanChanged
	em := turn.NewEmitter("claude", time.Now, func(ev cli.Event) {
		plan, ok := ev.(cli.PlanChanged)
		if !ok {
			t.Errorf("a tool that keeps the plan is shown: %#v", ev)
		}
		told = append(told, plan)
	})
	mem := newMemory()
	p := newParser(em, mem, "/dir")
	n := 0
	call := func(tool, input, output string) {
		n++
		id := "call" + string(rune('a'+n))
		p.flow.tools.start("", block{ID: id, Type: "tool_use", Name: tool, Input: json.RawMessage(input)}, "")
		content, _ := json.Marshal(output)
		p.flow.tools.end(block{ToolUseID: id, Content: content}, nil)
	}
	call("TaskCreate", `{"subject":"Read the parser","description":"all of it"}`, "Task #1 created successfully: Read the parser")
	call("TaskCreate", `{"subject":"Write tests"}`, "Task #2 created successfully: Write tests")
	call("TaskUpdate", `{"taskId":"1","status":"completed"}`, "Updated task #1 status")
	call("TaskUpdate", `{"taskId":"2","status":"in_progress"}`, "Updated task #2 status")
	call("TaskUpdate", `{"taskId":"9","status":"completed"}`, "Task not found")
	call("TaskList", `{}`, "#1. [completed] Read the parser")
	call("TaskUpdate", `{"taskId":"1","status":"deleted"}`, "Updated task #1 deleted")
	call("TodoWrite", `{"todos":[{"content":"a","status":"completed","activeForm":"A"},{"content":"b","status":"pending","activeForm":"B"}]}`, "Todos have been modified")
	want := []cli.PlanChanged{
		{Steps: []cli.PlanStep{{Text: "Read the parser", State: cli.PlanOpen}}},
		{Steps: []cli.PlanStep{{Text: "Read the parser", State: cli.PlanOpen}, {Text: "Write tests", State: cli.PlanOpen}}},
		{Steps: []cli.PlanStep{{Text: "Read the parser", State: cli.PlanDone}, {Text: "Write tests", State: cli.PlanOpen}}},
		{Steps: []cli.PlanStep{{Text: "Read the parser", State: cli.PlanDone}, {Text: "Write tests", State: cli.PlanActive}}},
		{Steps: []cli.PlanStep{{Text: "Write tests", State: cli.PlanActive}}},
		{Steps: []cli.PlanStep{{Text: "a", State: cli.PlanDone}, {Text: "b", State: cli.PlanOpen}}},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
