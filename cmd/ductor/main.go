// Command ductor talks to coding agents from Telegram.
//
// This package holds flags, signals and exit codes, with one file per subcommand. Package internal/app connects what
// ductor consists of.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ductor/cmd/ductor/sub"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/doctor"
	"ductor/internal/keys"
	"ductor/internal/sim/agent"
	"ductor/orchestrator"
)

func main() {
	runIfAsked()       // before anything of the bot is made
	agent.RunIfChild() // the scripted agent of the demo is this program under another name
	env, err := ownEnvironment()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ductor:", err)
		os.Exit(exitFailure)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = command(env).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ductor:", err)
	}
	os.Exit(exitCode(err))
}

func command(env config.Environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "ductor",
		Short: "Talk to your coding agents from Telegram",
		Long: "ductor is a self-hosted Telegram bot that drives the agent CLIs installed on this machine.\n" +
			"ductor demo shows it without an account. To use it: ductor setup, then ductor run. ductor doctor says what is missing.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	version := root.Flags().Bool("version", false, "print the version") // cobra's own needs text/template, and 6 MB with it
	root.SetFlagErrorFunc(suggestFlag)
	root.AddCommand(runCommand(env), demoCommand(), doctorCommand(env), versionCommand(), simAgentCommand())
	root.AddCommand(psCommand(env), attachCommand(env), killCommand(env), auditCommand(env), dashboardCommand(env), mcpCommand(), sendCommand())
	from := func(cmd *cobra.Command) func() (config.Config, error) { return sourceOf(cmd, env).read }
	root.AddCommand(sub.Secret(env, from), sub.Backup(from, describe()), sub.Restore(from), sub.Service(from), sub.Terminal(env, from), sub.Users(from), sub.Upgrade(from, describe()))
	root.AddCommand(sub.Setup(env, func(ctx context.Context, path string, out io.Writer) error {
		return examine(ctx, &source{env: env, path: path}, out, doctor.Findings.WriteText)
	}))
	sayWhatIsMissing(root)
	for _, group := range append(root.Commands(), root) { // cobra takes a mistyped subcommand of a group for a wish for help, and succeeds
		if group.HasSubCommands() && !group.Runnable() {
			group.Args, group.RunE = suggestCommand, func(cmd *cobra.Command, _ []string) error {
				if cmd == root && *version {
					_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine())
					return err
				}
				return cmd.Help()
			}
		}
	}
	return root
}

// sayWhatIsMissing has a command that is given too few or too many arguments say which it takes.
func sayWhatIsMissing(cmd *cobra.Command) {
	if check := cmd.Args; check != nil && cmd.Runnable() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && strings.Contains(cmd.Use, " ") {
				return fmt.Errorf("%w; it is used as: %s", err, cmd.UseLine())
			}
			return err
		}
	}
	for _, sub := range cmd.Commands() {
		sayWhatIsMissing(sub)
	}
}

// source is where a command takes its configuration from.
type source struct {
	env  config.Environment
	path string // as the flag says; the default where it says nothing
	err  error  // why there is no default
}

// sourceOf is the source of cmd, with the flag that names a file.
func sourceOf(cmd *cobra.Command, env config.Environment) *source {
	s := &source{env: env}
	s.path, s.err = config.DefaultPath(env)
	cmd.Flags().StringVarP(&s.path, "config", "c", s.path, "the configuration file; $"+config.PathVariable+" names another default")
	return s
}

// load reads the configuration and the keys of agents.
func (s *source) load() (config.Config, error) {
	cfg, err := s.read()
	if err != nil {
		return cfg, err
	}
	if cfg.Keys, err = keys.Read(cfg.Storage.Dir, s.env.Getenv(keys.CredentialsVariable)); err != nil {
		return cfg, app.OfKind(app.ErrConfig, err)
	}
	return cfg, nil
}

// read reads the configuration alone.
func (s *source) read() (config.Config, error) {
	if s.path == "" && s.err != nil {
		return config.Config{}, app.OfKind(app.ErrConfig, s.err)
	}
	cfg, err := config.LoadFrom(s.path, s.env)
	if err != nil {
		return cfg, app.OfKind(app.ErrConfig, err)
	}
	cfg.Warnings = append(cfg.Warnings, app.DoubtsOfRoots(cfg)...)
	return cfg, nil
}

// The exit codes, for service managers and scripts.
const (
	exitOK       = 0
	exitFailure  = 1
	exitConfig   = 2 // the configuration is wrong: restarting will not help
	exitToken    = 3 // Telegram refuses the token: restarting will not help
	exitInstance = 4 // another ductor serves this token
	exitDisk     = 5 // the disk under the database reports an error: a restart reads what is on it
	exitNewer    = 6 // a newer release is there
)

// exitCode is the one place where an error becomes an exit code.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, app.ErrConfig):
		return exitConfig
	case errors.Is(err, app.ErrToken):
		return exitToken
	case errors.Is(err, app.ErrInstance):
		return exitInstance
	case errors.Is(err, orchestrator.ErrDiskFailed):
		return exitDisk
	case errors.Is(err, sub.ErrNewer):
		return exitNewer
	default:
		return exitFailure
	}
}

// version is set by the linker at a release; a build from source says which commit it is.
var version = "dev"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), versionLine())
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("ductor %s (%s, %s/%s)\n", describe(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func describe() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return version + " " + s.Value[:12]
		}
	}
	return version
}
