package main

import (
	"os"

	"github.com/spf13/cobra"

	"ductor/internal/runner"
	"ductor/internal/sim/agent"
)

// simAgentCommand lists the scripted agent as a command. main runs the agent before it reads a flag, so that it starts
// fast.
func simAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:                agent.Subcommand + " claude|codex [ARG ...]",
		Short:              "Be the scripted agent that the demo talks to",
		Hidden:             true,
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			os.Exit(agent.Main(args, os.Stdin, os.Stdout, os.Stderr, os.Environ()))
		},
	}
}

// runnerArg makes this program the runner of this machine's agents. ductor starts it at need; users do not, so it is
// no command of cobra's.
const runnerArg = "runner"

// runIfAsked runs the runner and exits if the arguments ask for it, and returns otherwise.
func runIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == runnerArg {
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	}
}
