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

// For each situation with a row in docs/agents.md, this compares the output of the real agents that users configure with the
// resulting events.
func TestCells(t *testing.T) {
	for _, name := range []string{"opencode", "qwen", "cline", "codex-acp", "claude-agent-acp"} {
		t.Run(name, func(t *testing.T) {
			clitest.Cells(t, clitest.CellHarness{
				Agent: name, Install: realagent.OfProtocol()[name], Record: record, Update: renew,
				New: func(_ testing.TB, l cli.Launcher, real realagent.CLI) cli.Provider {
					return New(Options{
						ProviderOptions: cli.ProviderOptions{Path: real.Path, Launcher: l, Env: real.Environ, AllowEnv: real.Names()},
						Agent:           cli.Agent(name), Args: real.ACPArgs,
					})
				},
			})
		})
	}
}
