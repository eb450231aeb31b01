package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ductor/internal/sim/script"
)

// task is a command that runs in the background of a live session.
type task struct {
	id, tool, description string
	output                string // file for the command's output
	run                   toolRun
	text                  []string // the agent's text after the command has ended
}

// background starts a command and does not wait for its end. The live session handles the end of the command.
func (t *claudeTurn) background(st script.Background) error {
	ended := &task{id: "b" + newUUID()[:8], tool: t.stream.toolID(), description: st.Command, text: st.Chunks}
	input := []any{"command", st.Command, "description", st.Command, "run_in_background", true}
	return t.tool("Bash", input, t.bashAllowed(false), func(json.RawMessage) (toolOutcome, error) {
		ended.output = filepath.Join(os.TempDir(), "claude-tasks", t.id, ended.id+".output")
		t.emit(t.systemEvent("task_started", "task_id", ended.id, "tool_use_id", ended.tool,
			"description", ended.description, "task_type", "local_bash"))
		t.working++
		go func() {
			// This command outlives Claude, even if Claude is killed.
			ended.run, _ = t.runTool(t.life, st.Command, func(error) bool { return false })
			select {
			case t.tasks <- ended:
			case <-t.life.Done():
			}
		}()
		return toolOutcome{text: "Command running in background with ID: " + ended.id +
			". Output is being written to: " + ended.output +
			". You will be notified when it completes. To check interim output, use Read on that file path.",
			detail: obj("stdout", "", "stderr", "", "interrupted", false, "isImage", false, "noOutputExpected", false,
				"backgroundTaskId", ended.id)}, nil
	})
}

// reportEndedTask starts a turn that reports the end of a background command.
func (c *claude) reportEndedTask(ended *task) *runningTurn {
	c.working--
	status := "completed"
	if ended.run.code != 0 {
		status = "failed"
	}
	if err := os.MkdirAll(filepath.Dir(ended.output), 0o700); err == nil {
		_ = os.WriteFile(ended.output, []byte(ended.run.output), 0o600) // Claude also ignores errors of this write
	}
	c.emit(c.systemEvent("task_updated", "task_id", ended.id, "patch", obj("status", status)))
	c.emit(c.systemEvent("task_notification", "task_id", ended.id, "tool_use_id", ended.tool, "status", status,
		"output_file", ended.output,
		"summary", fmt.Sprintf("Background command %q %s (exit code %d)", ended.description, status, ended.run.code)))
	return c.begin(func(t *claudeTurn) turnEnd {
		t.emit(t.initEvent())
		return t.finish(t.play([][]script.Step{{script.Text{Chunks: []string{strings.Join(ended.text, "")}}}}))
	})
}
