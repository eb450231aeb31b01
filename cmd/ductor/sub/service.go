package sub

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ductor/internal/config"
	"ductor/internal/service"
)

// Service returns the commands that manage ductor as a service of systemd.
func Service(from Source) *cobra.Command {
	cmd := &cobra.Command{
		Use: "service", Short: "Run ductor as a systemd service",
		Long: "Run ductor as a systemd service of your user, or of the system with --system.",
	}
	system := cmd.PersistentFlags().Bool("system", false, "use the system's service manager instead of your user's")
	cmd.AddCommand(installService(from, system))
	cmd.AddCommand(onService(system, "uninstall", "Stop the service and remove its unit; working agents continue",
		func(cmd *cobra.Command, m service.Manager) error {
			return m.Uninstall(cmd.Context())
		}), onService(system, "status", "Show the state of the service",
		func(cmd *cobra.Command, m service.Manager) error {
			return m.Status(cmd.Context())
		}))
	cmd.AddCommand(serviceLogs(system))
	return cmd
}

func onService(system *bool, name, short string, f func(*cobra.Command, service.Manager) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := manager(cmd, *system)
			if err != nil {
				return err
			}
			return f(cmd, m)
		}}
}

func serviceLogs(system *bool) *cobra.Command {
	lines, follow := 100, false
	cmd := onService(system, "logs", "Show the log of the service", func(cmd *cobra.Command, m service.Manager) error {
		how := service.End
		if follow {
			how = service.Continue
		}
		return m.Logs(cmd.Context(), lines, how)
	})
	cmd.Flags().IntVarP(&lines, "lines", "n", lines, "print this many of the newest lines")
	cmd.Flags().BoolVarP(&follow, "follow", "f", follow, "keep printing new lines until Ctrl-C")
	return cmd
}

func manager(cmd *cobra.Command, system bool) (service.Manager, error) {
	m := service.Manager{Scope: service.User, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
	if system {
		m.Scope = service.System
	}
	config, err := os.UserConfigDir()
	if err != nil && !system {
		return m, err
	}
	m.Dir = service.Dir(m.Scope, config)
	return m, nil
}

func installService(from Source, system *bool) *cobra.Command {
	var account string
	var yes bool
	cmd := &cobra.Command{
		Use: "install", Short: "Write the unit after showing it, and start the service", Args: cobra.NoArgs,
		Long: "Show the unit, ask, write it, and start ductor now and at every boot. Run it again if ductor, its " +
			"configuration\n" +
			"or your PATH changed. A unit that you wrote yourself is not replaced.",
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "write the unit without asking")
	cmd.Flags().StringVar(&account, "as", os.Getenv("SUDO_USER"), "with --system: run ductor as this user")
	load := from(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		m, err := manager(cmd, *system)
		if err != nil {
			return err
		}
		unit := newUnit(m)
		unit.Account = account
		if *system {
			err = ofMachine(cmd, &unit)
		} else {
			err = ofUser(load, &unit)
		}
		if err != nil {
			return err
		}
		return install(cmd, m, unit, yes)
	}
	return cmd
}

// newUnit returns a systemd unit. The caller must add the configuration.
func newUnit(m service.Manager) service.Unit {
	return service.Unit{Scope: m.Scope, Path: absolutePath(os.Getenv("PATH"))}
}

// ofUser makes a unit run ductor with the current user's configuration file.
func ofUser(load func(...string) (config.Config, error), unit *service.Unit) error {
	cfg, err := load()
	if err != nil {
		return err
	}
	unit.Config = cfg.File
	return nil
}

// ofMachine makes a unit run ductor with the configuration file that --config names. The file belongs to the user
// unit.Account. ofMachine does not read the file, because the current user may lack the permission.
func ofMachine(cmd *cobra.Command, unit *service.Unit) error {
	if !cmd.Flag("config").Changed {
		return errors.New("name the configuration of that user with -c FILE")
	}
	if _, err := user.Lookup(unit.Account); err != nil {
		return fmt.Errorf("name the user that ductor runs as with --as NAME: %w", err)
	}
	path, err := filepath.Abs(cmd.Flag("config").Value.String())
	if err == nil {
		_, err = os.Stat(path)
	}
	unit.Config = path
	return err
}

// absolutePath removes relative directories from a PATH.
func absolutePath(path string) string {
	var all []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			all = append(all, dir)
		}
	}
	return strings.Join(all, string(filepath.ListSeparator))
}

func install(cmd *cobra.Command, m service.Manager, unit service.Unit, yes bool) error {
	var err error
	if unit.Program, err = os.Executable(); err != nil {
		return err
	}
	text, err := unit.Text()
	if err != nil {
		return err
	}
	if err := m.Check(cmd.Context()); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s:\n\n%s\n", m.Path(), text)
	if !yes {
		if err := confirm(cmd, "write it and start the service?"); err != nil {
			return err
		}
	}
	if err := m.Install(cmd.Context(), text); err != nil {
		return err
	}
	fmt.Fprintln(out, "the service is installed and started; check it with: ductor service status")
	if m.Scope == service.User {
		fmt.Fprintln(out, "to keep it running while you are logged out: loginctl enable-linger")
	}
	return nil
}

// confirm asks the user in the terminal, and returns an error unless the user agrees.
func confirm(cmd *cobra.Command, question string) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("nothing was written: there is no terminal to ask in; use --yes")
	}
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err == nil && word != "y" && word != "yes" {
		err = errors.New("you did not say yes")
	}
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	return nil
}
