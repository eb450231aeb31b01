package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// sendCommand returns the command that sends a message to the chat of the agent in whose shell it runs.
func sendCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "send [TEXT ...]",
		Short: "Send a message or a file into the chat, from a shell of an agent that ductor runs",
		Long: "Sends a message, or a file of the project with the text below it, into the chat that the agent around " +
			"this shell works for. " +
			"It works while a turn of that agent runs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args, " ")
			tool, input := "send_message", map[string]any{"text": text}
			switch {
			case file != "":
				tool, input = "send_file", map[string]any{"path": file, "caption": text}
			case strings.TrimSpace(text) == "":
				return errors.New("name a text or --file PATH to send")
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
	cmd.Flags().StringVar(&file, "file", "", "a file to send, absolute or below the project")
	return cmd
}
