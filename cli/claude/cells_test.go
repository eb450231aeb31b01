package claude

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

var record = clitest.RecordFlag()

// For each situation with a row in docs/agents.md, this compares the output of the real Claude Code with the resulting
// events.
func TestCells(t *testing.T) {
	clitest.Cells(t, clitest.CellHarness{
		Agent: "claude", Record: record, Update: update,
		Install: func(t testing.TB, api string) realagent.CLI {
			c := realagent.Claude(t, api)
			c.Vars["CLAUDE_CODE_MAX_RETRIES"] = "1" // the default is ten attempts
			return c
		},
		New: func(_ testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider {
			return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Path: c.Path, Env: c.Environ}})
		},
	})
}
