package main

import (
	"os"

	"github.com/spf13/cobra"

	"ductor/internal/attach/client"
	"ductor/internal/config"
)

func attachCommand(env config.Environment) *cobra.Command {
	var from *source
	var lines bool
	cmd := &cobra.Command{
		Use:   "attach [CONVERSATION]",
		Short: "Open a chat in this terminal, beside the phone",
		Long: "Open a chat in this terminal: follow it, send prompts and answer approvals, beside the phone.\n" +
			"CONVERSATION is the title of the chat's session, the beginning of it, or the ID of the chat as " +
			"chat/topic.\n" +
			"Without it, your private chat with the bot opens.\n\n" +
			"In a pipe, plain lines are printed, and all of standard input is one prompt:\n" +
			"  echo \"fix the tests\" | ductor attach",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := from.readParts(cmd.ErrOrStderr(), "storage")
			if err != nil {
				return err
			}
			o := client.Options{Dir: cfg.Storage.Dir, In: os.Stdin, Out: os.Stdout, Getenv: env.Getenv, Lines: lines}
			if len(args) == 1 {
				o.Conversation = args[0]
			}
			return client.Attach(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&lines, "lines", false, "in a pipe, send each line as a prompt of its own")
	from = sourceOf(cmd, env)
	return cmd
}
