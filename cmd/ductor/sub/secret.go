package sub

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ductor/internal/config"
	"ductor/internal/keys"
)

// Secret returns the commands that store and delete API keys of agents.
func Secret(env config.Environment, from Source) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Store API keys of agents in private files, not in the configuration",
		Long: "Store an API key in a file that only your user can read. NAME is AGENT.VARIABLE, such as " +
			"codex.OPENAI_API_KEY; the variable is enough if only one agent uses it. Only that agent gets the key, " +
			"and " +
			"ductor removes it from everything it shows and stores. Restart ductor afterwards.",
	}
	from = from.forParts("storage")
	cmd.AddCommand(setSecret(from), listSecrets(env, from), removeSecret(from))
	return cmd
}

func setSecret(from Source) *cobra.Command {
	return withConfig(from, &cobra.Command{
		Use: "set NAME", Short: "Store a key: ask for it, or read it from standard input", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		name, err := keys.Parse(args[0])
		if err != nil {
			return err
		}
		in, err := secretFrom(cmd.InOrStdin(), cmd.ErrOrStderr(), name.String())
		if err != nil {
			return err
		}
		if err := keys.Set(cfg.Storage.Dir, name, in); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is stored; restart ductor if it is running\n", name)
		return err
	})
}

// secretFrom returns a reader for a secret. If in is a terminal, secretFrom asks the user and hides the typed
// characters. Otherwise it returns in.
func secretFrom(in io.Reader, prompt io.Writer, name string) (io.Reader, error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return in, nil
	}
	fmt.Fprintf(prompt, "%s (not shown): ", name)
	typed, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(prompt)
	if err != nil {
		return nil, fmt.Errorf("read from the terminal: %w", err)
	}
	return strings.NewReader(string(typed)), nil
}

func listSecrets(env config.Environment, from Source) *cobra.Command {
	return withConfig(from, &cobra.Command{
		Use: "list", Short: "List the keys, without their values", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, cfg config.Config, _ []string) error {
		all, err := keys.Read(cfg.Storage.Dir, env.Getenv(keys.CredentialsVariable))
		if err != nil {
			return err
		}
		if len(all) == 0 {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "no keys are stored")
			return err
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "AGENT\tVARIABLE\tKEPT IN")
		for _, k := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\n", k.Agent, k.Name, k.From)
		}
		return w.Flush()
	})
}

func removeSecret(from Source) *cobra.Command {
	return withConfig(from, &cobra.Command{
		Use: "rm NAME", Short: "Delete a key", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		name, err := keys.Parse(args[0])
		if err != nil {
			return err
		}
		if err := keys.Remove(cfg.Storage.Dir, name); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is deleted; restart ductor if it is running\n", name)
		return err
	})
}

// withConfig makes cmd load the configuration and pass it to f.
func withConfig(from Source, cmd *cobra.Command, f func(*cobra.Command, config.Config, []string) error) *cobra.Command {
	load := from(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		return f(cmd, cfg, args)
	}
	return cmd
}
