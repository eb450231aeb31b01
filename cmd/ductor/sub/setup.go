package sub

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/secrets"
	"ductor/internal/setup"
)

// Doctor checks the configuration at path and writes its findings to out.
type Doctor func(ctx context.Context, path string, out io.Writer) error

// Setup returns the command that writes the configuration.
func Setup(env config.Environment, doctor Doctor) *cobra.Command {
	var given setup.Given
	var owner string
	var yes, asService bool
	path, pathErr := config.DefaultPath(env)
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Set up ductor step by step and write the configuration",
		Long: "Ask for the bot's token, find out who you are from a message to the bot, find your agents, show the " +
			"configuration and write it. You can run it again: your comments and all other keys stay. --yes asks " +
			"nothing and " +
			"uses flags, the variables below, and what is configured already. The token is read from $" +
			config.TokenVariable + ".",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if path == "" {
				return app.WithKind(app.ErrConfig, pathErr)
			}
			given.Token = secrets.Value(env.Getenv(config.TokenVariable))
			if given.Owner, err = setup.ParseOwner(owner); err != nil {
				return err
			}
			in, _ := cmd.InOrStdin().(*os.File)
			if yes {
				in = nil
			}
			on := newConsole(in, cmd.OutOrStdout())
			if given.Unattended = yes; !yes {
				on.Say("%s", introduction)
			}
			if err := setup.Run(cmd.Context(), path, given, on, world(env)); err != nil {
				return err
			}
			on.Say("")
			ductor := program(env, path)
			if err := doctor(cmd.Context(), path, cmd.OutOrStdout()); err != nil {
				on.Say("\nFix what FAILs above, and look again with: %s\nThen start ductor with:                 %s",
					ductor.with("doctor"), ductor.with("run"))
				return err
			}
			return offerService(cmd, on, ductor, path, asService)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&path, "config", "c", path,
		"the configuration file; $"+config.PathVariable+" changes the default")
	flags.BoolVar(&yes, "yes", false, "ask nothing")
	flags.BoolVar(&asService, "service", false, "install the systemd service too, as ductor service install does")
	flag := func(to *string, name, variable, usage string) {
		flags.StringVar(to, name, env.Getenv(variable), usage+"; $"+variable)
	}
	flag(&owner, "owner", "DUCTOR_OWNER", "the Telegram ID of the owner; no code is needed then")
	flag(&given.Project, "project", "DUCTOR_PROJECT", "the directory that agents work in")
	flag(&given.Sandbox, "sandbox", "DUCTOR_SANDBOX", "where agents run: off (on this machine) or docker")
	flag(&given.Model, "model", "DUCTOR_MODEL", "the agent of new chats, or AGENT/MODEL")
	flag(&given.APIBase, "api-base", "DUCTOR_API_BASE", "the URL of your own Bot API server")
	return cmd
}

const introduction = `This makes a bot of your own in about five minutes. You need Telegram on your phone.

  1. the bot's token, from @BotFather      4. where agents run
  2. who you are: you open a link          5. which agent answers first
  3. the directory for agents

Nothing is written before you have seen it and agreed. Ctrl-C ends it.
`

// offerService installs ductor as a service if the owner agrees. Otherwise it prints the given command line, which
// starts ductor.
func offerService(cmd *cobra.Command, on *console, ductor call, path string, wanted bool) error {
	m, err := manager(cmd, false)
	if err == nil {
		err = m.Check(cmd.Context())
	}
	if err == nil && !wanted {
		var failed error
		if wanted, failed = setup.Agree(cmd.Context(), on, "\nRun ductor as a service, now and at every boot?",
			"no"); failed != nil {
			return failed
		}
	}
	if !wanted {
		on.Say("\nStart ductor with:      %s", ductor.with("run"))
		if err == nil {
			on.Say("To have it run always:  %s", ductor.with("service install"))
		}
		on.Say("Then write to your bot.")
		return nil
	}
	if err != nil {
		return err
	}
	unit := newUnit(m)
	if err := ofUser(func(...string) (config.Config, error) { return config.Load(path) }, &unit); err != nil {
		return err
	}
	return install(cmd, m, unit, true)
}

// world gives package setup access to this machine: the environment, Telegram, and the installed agents.
func world(env config.Environment) setup.World {
	return setup.World{
		Environment: env,
		Connect: func(cfg config.Config) (setup.API, error) {
			transport, err := app.Transport(cfg)
			if err != nil {
				return nil, err
			}
			return tgapi.NewAPI(cfg.Telegram.APIBase, cfg.Telegram.Token.Reveal(), transport), nil
		},
		Lock:   app.LockInstance,
		Engine: environment.CheckEngine,
		Agents: lookAtAgents,
	}
}

// lookAtAgents returns the states of the agents on this machine.
func lookAtAgents(ctx context.Context, cfg config.Config) (states []cli.AgentState, err error) {
	err = app.WithProbes(cfg, func(providers []cli.Provider) {
		states = make([]cli.AgentState, len(providers))
		var looks sync.WaitGroup
		for i, p := range providers {
			looks.Go(func() { states[i] = app.ProbeAgent(ctx, cfg, p) })
		}
		looks.Wait()
	})
	return states, err
}
