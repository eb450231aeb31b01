package acp

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

var (
	renew  = clitest.UpdateFlag()
	record = clitest.RecordFlag()
)

// For each situation with a row in docs/agents.md, this compares the output of the real OpenCode and Qwen Code with the
// resulting events.
func TestCells(t *testing.T) {
	for name, c := range map[string]struct {
		install func(testing.TB, string) realagent.CLI
		args    []string
	}{"opencode": {realagent.OpenCode, []string{"acp"}}, "qwen": {realagent.Qwen, []string{"--acp"}}} {
		t.Run(name, func(t *testing.T) {
			clitest.Cells(t, clitest.CellHarness{
				Agent: name, Install: c.install, Record: record, Update: renew,
				New: func(_ testing.TB, l cli.Launcher, real realagent.CLI) cli.Provider {
					return New(Options{
						ProviderOptions: cli.ProviderOptions{Path: real.Path, Launcher: l, Env: real.Environ, AllowEnv: []string{"OPENAI_*", "OPENCODE_*"}},
						Agent:           cli.Agent(name), Args: c.args,
					})
				},
			})
		})
	}
}
