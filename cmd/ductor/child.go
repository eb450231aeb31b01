package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/runner"
	"ductor/internal/sim/agent"
	"ductor/internal/terminal"
	"ductor/internal/terminal/hook"
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

// restartWait is how long a hook waits for a ductor that was to answer it and ended.
const restartWait = 10 * time.Minute

// runIfAsked runs the runner or a hook and exits if the arguments ask for it, and returns otherwise. The CLIs of a user's terminals
// run hooks, and wait for them: a hook is no command of cobra's either.
func runIfAsked() {
	switch {
	case len(os.Args) > 1 && os.Args[1] == runnerArg:
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == terminal.Verb:
		os.Exit(hook.Main(hook.Process{
			Args: os.Args[2:], In: os.Stdin, Out: os.Stdout, Within: os.Getenv(runner.RunVar) != "",
			RestartWait: restartWait, StateFlag: terminal.StateFlag, ThenFlag: terminal.ThenFlag,
		}))
	}
}
