package copilot

import (
	"regexp"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/frames"
	"ductor/internal/realagent"
)

var record = clitest.RecordFlag()

// noise matches events of Copilot that ductor does not read, including the whole instructions of its model.
var noise = regexp.MustCompile(`"method":"(?:session\.lifecycle|host\.event)"|"event":\{"type":"(?:system\.message|assistant\.streaming_delta|` +
	`model\.(?:log|message|messages_snapshot|model_call_\w+|turn_\w+|tool_execution|call_start|call_finished|call_final_result|response)|pending_messages\.modified|` +
	`session\.(?:shutdown|skills_loaded|background_tasks_changed|updated|tools_updated|managed_settings_resolved|mcp_servers_loaded|created|title_changed))"`)

// For each situation with a row in docs/agents.md, this compares the output of the real Copilot with the resulting
// events.
func TestCells(t *testing.T) {
	clitest.Cells(t, clitest.CellHarness{
		Agent: "copilot", Framing: frames.ContentLength, Noise: noise, Record: record, Update: update,
		Install: realagent.Copilot,
		New: func(_ testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider {
			return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Path: c.Path, Env: c.Environ}})
		},
	})
}
