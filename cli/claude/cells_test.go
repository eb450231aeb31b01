package claude

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

var record = clitest.RecordFlag()

// What the real Claude Code printed in each situation that docs/agents.md has a row for, and the events that this is.
func TestCells(t *testing.T) {
	clitest.Cells(t, clitest.CellHarness{
		Agent: "claude", Record: record, Update: update,
		Install: func(t testing.TB, api string) realagent.CLI {
			c := realagent.Claude(t, api)
			c.Vars["CLAUDE_CODE_MAX_RETRIES"] = "1" // it asks ten times otherwise
			return c
		},
		New: func(_ testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider {
			return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Path: c.Path, Env: c.Environ}})
		},
	})
}
