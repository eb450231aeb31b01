package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ductor/internal/config"
	"ductor/internal/statesocket"
	"ductor/mcp/relay"
)

// mcpCommand returns the command that connects an MCP client to ductor's tools. The client is an agent that ductor
// runs, or a program of the owner such as an IDE.
func mcpCommand(env config.Environment, tokens *cobra.Command) *cobra.Command {
	var from *source
	var tokenFile string
	cmd := &cobra.Command{
		Use:   relay.Verb,
		Short: "Serve ductor's tools to an MCP client",
		Long: "Serve ductor's tools to an MCP client on standard input and output. The client starts this command.\n" +
			"Agents that ductor runs have a token in $" + relay.TokenVar + ". For any other client, such as Claude " +
			"Desktop or\n" +
			"an IDE, create a token with ductor mcp token.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := relayFor(from, tokenFile)
			if err != nil {
				return err
			}
			ended := make(chan error, 1)
			// Run returns when its input ends. If ctx is done first, the process exits while Run still waits for input.
			go func() { ended <- r.Run(cmd.Context(), os.Stdin, os.Stdout) }()
			select {
			case err := <-ended:
				return err
			case <-cmd.Context().Done():
				return nil
			}
		},
	}
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "read the token from this file instead of $"+relay.TokenVar)
	from = sourceOf(cmd, env)
	cmd.AddCommand(tokens)
	return cmd
}

// errNoToken is the error if neither the environment nor a flag contains a token for ductor's MCP server.
var errNoToken = errors.New("$" + relay.TokenVar + " is not set: agents that ductor runs have it; for another MCP " +
	"client, create a token with ductor mcp token NAME")

// relayFor returns a relay for the MCP client that started this process.
func relayFor(from *source, tokenFile string) (*relay.Relay, error) {
	token, dir := os.Getenv(relay.TokenVar), os.Getenv(relay.DirVar)
	if tokenFile != "" {
		var err error
		if token, err = readTokenFile(tokenFile); err != nil {
			return nil, err
		}
	}
	if token == "" {
		return nil, errNoToken
	}
	if dir == "" {
		cfg, err := from.readParts(os.Stderr, "storage")
		if err != nil {
			return nil, err
		}
		dir = cfg.Storage.Dir
	}
	return newRelay(token, dir)
}

// relayFromEnvironment returns a relay for an agent that ductor runs. ductor has put the agent's token and ductor's
// state directory into the agent's environment.
func relayFromEnvironment() (*relay.Relay, error) {
	token, dir := os.Getenv(relay.TokenVar), os.Getenv(relay.DirVar)
	if token == "" || dir == "" {
		return nil, fmt.Errorf("$%s and $%s are not set: agents that ductor runs have them", relay.TokenVar,
			relay.DirVar)
	}
	return newRelay(token, dir)
}

// newRelay returns a relay to the ductor whose state directory is dir. If ductor did not start the client, newRelay
// also reads the secret of ductor's sockets.
func newRelay(token, dir string) (*relay.Relay, error) {
	r := &relay.Relay{Token: token, Dial: func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, dir)
	}}
	var err error
	if relay.IsGrant(token) {
		r.Secret, err = statesocket.ReadSecret(dir)
	}
	return r, err
}

// readTokenFile reads a token from a file. The file must not be readable for other users.
func readTokenFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others on this machine may read the token in %s; run: chmod 600 %s", path, path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
