// Command ductor lets users talk to coding agents from Telegram.
//
// Package main handles flags, signals and exit codes, with one file for each subcommand. Package internal/app builds
// the rest of ductor.
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
	"time"

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
	runIfAsked()       // first, because a hook or runner must start fast
	agent.RunIfChild() // the demo starts this program under another name as the scripted agent
	env, err := ownEnvironment()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ductor:", err)
		os.Exit(exitFailure)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var run func(context.Context) error
	stderr := sub.Plain(os.Stderr)
	root := command(env, &run)
	root.SetOut(sub.Plain(os.Stdout))
	root.SetErr(stderr)
	err = root.ExecuteContext(ctx)
	if err == nil && run != nil {
		// The command `ductor run` only sets the variable run. If the command itself ran the bot, cobra's whole tree of
		// commands would stay in memory as long as the bot runs.
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(stderr, "ductor:", err)
	}
	os.Exit(exitCode(err))
}

// command returns ductor's command with all subcommands. The subcommand run sets *run; see runCommand.
func command(env config.Environment, run *func(context.Context) error) *cobra.Command {
	root := &cobra.Command{
		Use:   "ductor",
		Short: "Talk to your coding agents from Telegram",
		Long: "ductor is a self-hosted Telegram bot that drives the agent CLIs installed on this machine.\n" +
			"Try it without an account: ductor demo. Set it up: ductor setup, then ductor run. If something fails: " +
			"ductor doctor.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// This flag replaces cobra's own version flag, which uses text/template and would make the program 6 MB larger.
	version := root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(suggestFlag)
	root.AddCommand(runCommand(env, run), demoCommand(), doctorCommand(env), versionCommand(), simAgentCommand())
	from := func(cmd *cobra.Command) func(...string) (config.Config, error) {
		s := sourceOf(cmd, env)
		return func(parts ...string) (config.Config, error) { return s.readParts(cmd.ErrOrStderr(), parts...) }
	}
	root.AddCommand(psCommand(env), attachCommand(env), killCommand(env), auditCommand(env), dashboardCommand(env),
		mcpCommand(env, sub.Tokens(from)), sendCommand())
	root.AddCommand(sub.Secret(env, from), sub.Backup(from, describe()), sub.Restore(from), sub.Service(from),
		sub.Terminal(env, from), sub.Users(from), sub.Upgrade(from, describe()), sub.Agents(env, from))
	root.AddCommand(sub.Setup(env, func(ctx context.Context, path string, out io.Writer) error {
		return examine(ctx, &source{env: env, path: path}, out, doctor.Findings.WriteText)
	}))
	showUsageOnWrongArgs(root)
	// Without this argument check, cobra shows the help for an unknown subcommand and exits with 0.
	for _, group := range append(root.Commands(), root) {
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

// showUsageOnWrongArgs makes errors about the number of arguments show the usage line, for cmd and all its subcommands.
func showUsageOnWrongArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil && cmd.Runnable() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && strings.Contains(cmd.Use, " ") {
				return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
			}
			return err
		}
	}
	for _, sub := range cmd.Commands() {
		showUsageOnWrongArgs(sub)
	}
}

type source struct {
	env  config.Environment
	path string         // value of the flag --config, or the default path
	err  error          // why the default path is unknown
	zone *time.Location // the zone of the first configuration that was read; nil before
}

// sourceOf adds the flag --config to cmd. It returns a source that reads the file named by the flag.
func sourceOf(cmd *cobra.Command, env config.Environment) *source {
	s := &source{env: env}
	s.path, s.err = config.DefaultPath(env)
	cmd.Flags().StringVarP(&s.path, "config", "c", s.path,
		"the configuration file; $"+config.PathVariable+" changes the default")
	return s
}

// load reads the configuration, and the API keys, which are stored in separate files.
func (s *source) load() (config.Config, error) {
	cfg, err := s.read()
	if err != nil {
		return cfg, err
	}
	return s.withKeys(cfg)
}

func (s *source) withKeys(cfg config.Config) (config.Config, error) {
	var err error
	if cfg.Keys, err = keys.Read(cfg.Storage.Dir, s.env.Getenv(keys.CredentialsVariable)); err != nil {
		return cfg, app.WithKind(app.ErrConfig, err)
	}
	return cfg, nil
}

// loadPlaces is like load, for commands that only need to know where ductor stores its state and runs its agents. If
// the configuration has mistakes elsewhere, loadPlaces prints them to notes and continues, because a mistake must not
// prevent a user from stopping an agent.
func (s *source) loadPlaces(notes io.Writer) (config.Config, error) {
	cfg, err := s.load()
	return ignoreMistakes(cfg, err, notes, (*config.Invalid).Places)
}

// readParts is like read, for commands that need only some tables or keys of the configuration. If the configuration
// has mistakes elsewhere, readParts prints them to notes and continues. If parts is empty, the command needs the whole
// configuration.
func (s *source) readParts(notes io.Writer, parts ...string) (config.Config, error) {
	cfg, err := s.read()
	if len(parts) == 0 {
		return cfg, err
	}
	return ignoreMistakes(cfg, err, notes, func(e *config.Invalid) (config.Config, bool) { return e.Parts(parts...) })
}

// ignoreMistakes ignores mistakes in the parts of a configuration that a command does not need. Its parameters cfg and
// err are the result of reading the configuration. If err is a *config.Invalid, ignoreMistakes calls the function part
// with err. part returns the parts that the command needs, and reports whether these parts are free of mistakes. If so,
// ignoreMistakes prints err to notes and returns the parts. In all other cases it returns cfg and err.
func ignoreMistakes(cfg config.Config, err error, notes io.Writer,
	part func(*config.Invalid) (config.Config, bool)) (config.Config, error) {
	var invalid *config.Invalid
	if !errors.As(err, &invalid) {
		return cfg, err
	}
	valid, ok := part(invalid)
	if !ok {
		return cfg, err
	}
	fmt.Fprintf(notes, "ductor: %v\nductor: the configuration has mistakes; this command works without them\n", err)
	return valid, nil
}

// read reads the configuration without the API keys.
func (s *source) read() (config.Config, error) {
	if s.path == "" && s.err != nil {
		return config.Config{}, app.WithKind(app.ErrConfig, s.err)
	}
	cfg, err := config.LoadFrom(s.path, s.env)
	if err != nil {
		return cfg, app.WithKind(app.ErrConfig, err)
	}
	if s.zone == nil { // a reload does not change the zone
		if s.zone, err = cfg.Telegram.Location(); err != nil {
			return cfg, app.WithKind(app.ErrConfig, err)
		}
		if cfg.Telegram.Zone != "" {
			time.Local = s.zone
		}
	}
	cfg.Warnings = append(cfg.Warnings, app.DoubtsOfRoots(cfg)...)
	return cfg, nil
}

// Exit codes, for service managers and scripts.
const (
	exitOK       = 0
	exitFailure  = 1
	exitConfig   = 2 // the configuration is invalid, so a restart does not help
	exitToken    = 3 // Telegram rejects the bot token, so a restart does not help
	exitInstance = 4 // another ductor already uses this bot token
	exitDisk     = 5 // the disk with the database has reported an error; a restart may help
	exitNewer    = 6 // a newer release is available
)

// exitCode returns the exit code for an error.
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

// version is set by the linker in releases. In other builds it is "dev", and describe adds the commit.
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
