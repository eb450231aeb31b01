// Command ductor talks to coding agents from Telegram.
//
// This package is wiring only: flags, configuration, construction of the rooms, signals, the order in which
// they end, and exit codes. One file per subcommand.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"ductor/internal/config"
	"ductor/internal/sim/agent"
)

func main() {
	superviseIfAsked() // nothing of the bot is made in a supervisor
	agent.RunIfChild() // the scripted agent of the demo is this program under another name
	env, err := environment()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ductor:", err)
		os.Exit(exitFailure)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = command(env).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ductor:", err)
	}
	os.Exit(exitCode(err))
}

func command(env config.Environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "ductor",
		Short:         "Talk to your coding agents from Telegram",
		Long:          "ductor is a self-hosted Telegram bot that drives the agent CLIs installed on this machine.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(runCommand(env), demoCommand(), doctorCommand(env), versionCommand(), simAgentCommand())
	root.AddCommand(psCommand(env), attachCommand(env), killCommand(env), auditCommand(env))
	root.AddCommand(benchCommand(), benchAgentCommand(), profiledRunCommand(env))
	return root
}
