package codex

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

var record = clitest.RecordFlag()

// For each situation with a row in docs/agents.md, this compares the output of the real Codex with the resulting
// events.
func TestCells(t *testing.T) {
	clitest.Cells(t, clitest.CellHarness{
		Agent: "codex", Record: record, Update: update,
		Install: realagent.Codex,
		New: func(_ testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider {
			return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Path: c.Path, Env: c.Environ}})
		},
	})
}
