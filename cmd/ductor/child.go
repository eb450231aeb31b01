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

// simAgentCommand returns the command of the scripted agent. It exists only for its help text: main starts the scripted
// agent before it parses flags, because that is faster.
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

// runnerArg is the argument that starts ductor as the runner of the agents on this machine. No cobra command handles
// it, because users do not need it.
const runnerArg = "runner"

// restartWait limits how long a hook waits for the next ductor process, if the current process ends before it has
// answered.
const restartWait = 10 * time.Minute

// replyWait limits how long a hook waits for the first reply of ductor. The agent CLI waits for the hook.
const replyWait = time.Second

// runIfAsked runs a runner, a hook or an MCP server if the arguments request one, and then exits. main calls runIfAsked
// before it builds the cobra commands, because this takes time and an agent CLI in a user's terminal waits for each
// hook.
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
			RestartWait: restartWait, ReplyWait: replyWait,
			StateFlag: terminal.StateFlag, ThenFlag: terminal.ThenFlag,
		}))
	}
}
