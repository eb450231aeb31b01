package main

import (
	"os"

	"github.com/spf13/cobra"

	"ductor/internal/sim/agent"
	"ductor/internal/supervisor"
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

// superviseArg makes this program the supervisor of one agent. ductor starts one for every run; users do not, so it is
// no command of cobra's.
const superviseArg = "supervise"

// superviseIfAsked runs the supervisor and exits if the arguments ask for one, and returns otherwise.
func superviseIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == superviseArg {
		os.Exit(supervisor.Main(os.Args[2:], os.Stderr))
	}
}
