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
		Short: "Open a conversation in this terminal, as its owner",
		Long: "Open a conversation in this terminal, as its owner: see the stream, write prompts, decide, while " +
			"the chat stays live.\n" +
			"CONVERSATION is the title of its session, the beginning of it, or its number as chat/topic. " +
			"Without one it is your\n" +
			"private chat with the bot.\n\n" +
			"In a pipe it prints plain lines, and standard input up to its end is one prompt:\n" +
			"  echo \"fix the tests\" | ductor attach",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := from.read()
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
	cmd.Flags().BoolVar(&lines, "lines", false, "in a pipe, each line is a prompt")
	from = sourceOf(cmd, env)
	return cmd
}
