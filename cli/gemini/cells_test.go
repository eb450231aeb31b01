package gemini

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

var record = clitest.RecordFlag()

// What the real Gemini printed in each situation that docs/agents.md has a row for, and the events that this is.
func TestCells(t *testing.T) {
	clitest.Cells(t, clitest.CellHarness{
		Agent: "gemini", Install: realagent.Gemini, Record: record, Update: update,
		New: func(t testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider {
			return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Path: c.Path, Env: c.Environ}, StateDir: t.TempDir()})
		},
	})
}
