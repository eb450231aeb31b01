package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/runner"
	"ductor/internal/sim/agent"
	"ductor/internal/terminal"
	"ductor/internal/terminal/hook"
	"ductor/mcp/relay"
)

// simAgentCommand documents the scripted agent as a command. main starts the agent before it parses flags, which is
// faster.
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

// runnerArg makes this program the runner of this machine's agents. Only ductor uses it, so cobra does not know it.
const runnerArg = "runner"

// restartWait is how long a hook waits for the next ductor if the one that should answer it ended.
const restartWait = 10 * time.Minute

// runIfAsked runs the runner, a hook or a server of the owner and exits if the arguments say so. The CLIs in a user's terminals wait for
// hooks, so these also start without cobra.
func runIfAsked() {
	switch {
	case len(os.Args) > 1 && os.Args[1] == relay.ServerVerb:
		fmt.Fprintln(os.Stderr, relay.StartServer(os.Args[2:]))
		os.Exit(exitFailure)
	case len(os.Args) > 1 && os.Args[1] == runnerArg:
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == terminal.Verb:
		os.Exit(hook.Main(hook.Process{
			Args: os.Args[2:], In: os.Stdin, Out: os.Stdout, Within: os.Getenv(runner.RunVar) != "",
			RestartWait: restartWait, StateFlag: terminal.StateFlag, ThenFlag: terminal.ThenFlag,
		}))
	}
}
