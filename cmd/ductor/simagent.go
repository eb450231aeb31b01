package main

import (
	"os"

	"github.com/spf13/cobra"

	"ductor/internal/sim/agent"
)

// simAgentCommand is the scripted agent as a program of its own. main gives way to it before any flag is
// read, so that it starts as fast as an agent can; this entry is for `ductor sim-agent` typed by hand.
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
