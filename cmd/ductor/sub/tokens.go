package sub

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/mcp/relay"
)

// Tokens returns the commands for tokens. Programs of the owner, such as IDEs, need a token to use ductor's MCP server.
// Without a subcommand, the command creates a token.
func Tokens(from Source) *cobra.Command {
	cmd := createToken(from, "token NAME")
	cmd.Long = "With a token, an MCP client such as Claude Desktop or an IDE uses ductor's tools for the owner, " +
		"outside of turns:\nin a conversation of its own, asking the owner in the chat. NAME names the client there."
	cmd.AddCommand(createToken(from, "create NAME"), listTokens(from), revokeToken(from))
	return cmd
}

func createToken(from Source, use string) *cobra.Command {
	var project string
	cmd := withConfig(from.forParts(append(roster(), "projects")...), &cobra.Command{
		Use: use, Short: "Create a token for an MCP client and show it once", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		if cfg.Owner() == 0 {
			return errors.New("there is no owner whom ductor could ask for an MCP client; name one in [users] of the " +
				"configuration")
		}
		dir, err := projectOf(cfg, project)
		if err != nil {
			return err
		}
		token, err := relay.CreateGrant(cfg.Storage.Dir, relay.Grant{Name: args[0], Dir: dir}, time.Now())
		if err != nil {
			return fmt.Errorf("create the token %q: %w", args[0], err)
		}
		settings, err := clientSettings(cfg, token)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "This token is shown only now. ductor mcp token revoke %s ends it.\n"+
			"For Claude Desktop and many other clients, put this into their settings:\n\n%s\n\n", args[0], settings)
		_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
		return err
	})
	cmd.Flags().StringVar(&project, "project", "", "the directory that the client works in; projects.default_dir "+
		"without it")
	return cmd
}

// projectOf returns the absolute path of a project directory. An empty path stays empty. If the directory is outside of
// the configured roots of projects, projectOf returns an error.
func projectOf(cfg config.Config, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	if !slices.ContainsFunc(cfg.Projects.Roots, func(root string) bool {
		return cli.Lies(cli.RealPath(dir), cli.RealPath(root))
	}) {
		return "", fmt.Errorf("%s is outside of projects.roots: %s", dir, strings.Join(cfg.Projects.Roots, ", "))
	}
	return dir, nil
}

// clientSettings returns settings for common MCP clients. With these settings, a client starts `ductor mcp`.
func clientSettings(cfg config.Config, token string) ([]byte, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	type server struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
	return json.MarshalIndent(map[string]map[string]server{"mcpServers": {"ductor": {program, []string{relay.Verb},
		map[string]string{relay.TokenVar: token, relay.DirVar: cfg.Storage.Dir}}}}, "", "  ")
}

func listTokens(from Source) *cobra.Command {
	return withConfig(from.forParts("storage", "projects"), &cobra.Command{
		Use: "list", Short: "List the names of the tokens", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, cfg config.Config, _ []string) error {
		tokens, err := relay.Grants(cfg.Storage.Dir)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tCREATED\tPROJECT")
		for _, t := range tokens {
			fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.Created.Local().Format(time.DateTime),
				cmp.Or(t.Dir, cfg.Projects.DefaultDir))
		}
		return w.Flush()
	})
}

func revokeToken(from Source) *cobra.Command {
	return withConfig(from.forParts("storage"), &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a token and disconnect its client", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		if err := relay.RevokeGrant(cfg.Storage.Dir, args[0]); err != nil {
			return fmt.Errorf("revoke the token %q: %w", args[0], err)
		}
		if err := relay.EndRevoked(cmd.Context(), cfg.Storage.Dir); err != nil {
			return fmt.Errorf("the token is revoked and ductor accepts no more calls of it, but one may still run: %w",
				err)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked\n", args[0])
		return err
	})
}
