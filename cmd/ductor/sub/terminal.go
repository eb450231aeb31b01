package sub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ductor/internal/config"
	"ductor/internal/terminal"
)

// Terminal returns the commands that add ductor's hooks to the agent CLIs that the user runs in terminals, and remove
// them.
func Terminal(env config.Environment, from Source) *cobra.Command {
	cmd := &cobra.Command{
		Use: "terminal", Short: "Let agents in your terminals ask you on your phone",
		Long: "Add hooks to the settings of Claude Code, Codex and Gemini, if you use them. While you are away, " +
			"Claude Code then\n" +
			"asks on your phone, and all three report when they finish. Your own hooks stay.",
	}
	cmd.AddCommand(installTerminal(env, from), uninstallTerminal(env, from), terminalStatus(env, from))
	return cmd
}

func installTerminal(env config.Environment, from Source) *cobra.Command {
	yes := false
	cmd := onTerminal(env, from, "install", "Add hooks to the settings of your agents, after showing them",
		func(cmd *cobra.Command, m terminal.Machine) error {
			files, err := m.Installed()
			if err != nil {
				return err
			}
			if err := m.RecordAccounts(); err != nil {
				return err
			}
			return writeHooks(cmd, files, yes, "the hooks are installed; restart running sessions to use them")
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "write without asking")
	return cmd
}

func uninstallTerminal(env config.Environment, from Source) *cobra.Command {
	yes := false
	cmd := onTerminal(env, from, "uninstall", "Remove ductor's hooks",
		func(cmd *cobra.Command, m terminal.Machine) error {
			files, err := m.Uninstalled()
			if err != nil {
				return err
			}
			return writeHooks(cmd, files, yes, "the hooks are removed")
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "write without asking")
	return cmd
}

func terminalStatus(env config.Environment, from Source) *cobra.Command {
	return onTerminal(env, from, "status", "Show which agents have ductor's hooks",
		func(cmd *cobra.Command, m terminal.Machine) error {
			abandoned, err := m.Abandoned()
			if err != nil {
				return err
			}
			files, err := m.Installed()
			if err != nil && (len(abandoned) == 0 || !errors.Is(err, terminal.ErrNoCLI)) {
				return err
			}
			current := len(files)
			for i, f := range append(files, abandoned...) {
				state := "no hooks of ductor"
				switch {
				case i >= current:
					state = "hooks in a folder that is no longer used; run ductor terminal uninstall, then install"
				case f.Hooked && f.Changed():
					state = "hooks of another ductor or of an older one; run ductor terminal install"
				case f.Hooked:
					state = "hooks installed"
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-7s %s (%s)\n", f.Agent, state, f.Path); err != nil {
					return err
				}
			}
			return nil
		})
}

// onTerminal returns a command that changes the settings of the user's agent CLIs.
func onTerminal(env config.Environment, from Source, name, short string,
	f func(*cobra.Command, terminal.Machine) error) *cobra.Command {
	return withConfig(from.forParts("storage", "agents"), &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs},
		func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			m := terminal.Machine{Home: env.Getenv("HOME"), Getenv: env.Getenv, Accounts: cfg.Agents.AccountHomes}
			var err error
			if m.Program, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			if m.State, err = filepath.Abs(cfg.Storage.Dir); err != nil {
				return err
			}
			return f(cmd, m)
		})
}

// writeHooks shows how the settings files will change, asks for confirmation, and writes the files.
func writeHooks(cmd *cobra.Command, files []terminal.File, yes bool, done string) error {
	out, changed := cmd.OutOrStdout(), false
	for _, f := range files {
		if f.Changed() {
			changed = true
			fmt.Fprintf(out, "%s\n", f.Diff())
		}
	}
	if !changed {
		_, err := fmt.Fprintln(out, "there is nothing to change")
		return err
	}
	if !yes {
		if err := confirm(cmd, "write it?"); err != nil {
			return err
		}
	}
	var failed []error
	for _, f := range files {
		if f.Changed() {
			failed = append(failed, f.Write())
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, done)
	return err
}
