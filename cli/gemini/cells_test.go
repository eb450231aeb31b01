package gemini

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

var record = clitest.RecordFlag()

// For each situation with a row in docs/agents.md, this compares the output of the real Gemini with the resulting
// events.
func TestCells(t *testing.T) {
	clitest.Cells(t, clitest.CellHarness{
		Agent: "gemini", Install: realagent.Gemini, Record: record, Update: update,
		New: func(t testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider {
			return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Path: c.Path, Env: c.Environ}, StateDir: t.TempDir()})
		},
	})
}
