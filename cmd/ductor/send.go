package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// sendCommand returns the command that sends a message to an agent's chat. The agent itself runs the command, in its
// shell.
func sendCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "send [TEXT ...]",
		Short: "Send a message or a file to the chat, from the shell of a running agent",
		Long: "Send a message, or a file of the project with the text below it, to the chat of the agent that runs " +
			"this " +
			"shell. It works only during a turn of that agent.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args, " ")
			tool, input := "send_message", map[string]any{"text": text}
			switch {
			case file != "":
				tool, input = "send_file", map[string]any{"path": file, "caption": text}
			case strings.TrimSpace(text) == "":
				return errors.New("give a text or --file PATH")
			}
			r, err := relayFromEnvironment()
			if err != nil {
				return err
			}
			reply, err := r.Call(cmd.Context(), tool, input)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), reply)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "send this file; the path is absolute or relative to the project")
	return cmd
}
