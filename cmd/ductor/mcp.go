package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"ductor/mcp/relay"
)

// mcpCommand is the program that agents start to reach ductor's tools.
func mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   relay.Verb,
		Short: "Give an agent that ductor runs the tools of ductor, by the Model Context Protocol",
		Long: "An agent that ductor runs starts this command, and speaks the Model Context Protocol with it on " +
			"standard input and output. " +
			"The environment of the agent says for which chat.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := relayFromEnvironment()
			if err != nil {
				return err
			}
			ended := make(chan error, 1)
			// Run returns at the end of its input; otherwise it ends with this process
			go func() { ended <- r.Run(cmd.Context(), os.Stdin, os.Stdout) }()
			select {
			case err := <-ended:
				return err
			case <-cmd.Context().Done():
				return nil
			}
		},
	}
}

// relayFromEnvironment returns a relay to the ductor that started the agent around this process.
func relayFromEnvironment() (*relay.Relay, error) {
	token, dir := os.Getenv(relay.TokenVar), os.Getenv(relay.DirVar)
	if token == "" || dir == "" {
		return nil, fmt.Errorf("$%s and $%s are not set: agents that ductor runs have them", relay.TokenVar,
			relay.DirVar)
	}
	return &relay.Relay{Token: token, Dial: func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, dir)
	}}, nil
}
