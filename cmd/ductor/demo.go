package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ductor/cli"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
	"ductor/web/demo"
)

func demoCommand() *cobra.Command {
	var opts demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try ductor in the browser, without a token or an account",
		Long: "demo serves a simulated Telegram as a page on this machine and lets you be the user on the phone.\n" +
			"Agents that are logged in here answer; if none is, a scripted agent does, with a tour.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), opts, os.Stdin, os.Stdout, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&opts.scripted, "scripted", false, "use the scripted agent even if a real one is logged in")
	cmd.Flags().StringVar(&opts.dir, "dir", "", "the directory the agents work in (default: a new, empty one)")
	cmd.Flags().StringVar(&opts.addr, "addr", "127.0.0.1:0", "where the page listens; port 0 is any free one")
	cmd.Flags().BoolVar(&opts.browser, "open", true, "open the page in the browser")
	cmd.Flags().BoolVar(&opts.terminal, "terminal", false, "chat in this terminal instead of a page")
	cmd.Flags().BoolVarP(&opts.verbose, "verbose", "v", false, "show ductor's own log")
	return cmd
}

type demoOptions struct {
	scripted bool
	dir      string
	verbose  bool
	terminal bool
	browser  bool   // open it
	addr     string // of the page
}

// runDemo runs the app on a simulated Telegram, with the user of the terminal as its user.
func runDemo(ctx context.Context, opts demoOptions, in *os.File, out *os.File, stderr io.Writer) error {
	scratch, err := os.MkdirTemp("", "ductor-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer os.RemoveAll(scratch)
	srv := telegram.New(telegram.Options{
		Limits: telegram.RealLimits(), BotName: "ductor",
		KeepMessages: 500, KeepVersions: 4, KeepCalls: 100, KeepFileBytes: 64 << 20,
	})
	if err := srv.Start(); err != nil {
		return fmt.Errorf("start the simulated Telegram: %w", err)
	}
	defer srv.Close()
	demo.Populate(srv)
	log := slog.New(slog.DiscardHandler)
	if opts.verbose {
		log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	cfg, scripted, err := demoConfig(ctx, opts, srv, scratch)
	if err != nil {
		return err
	}
	d := newDemoBot(cfg, srv.Token(), log)
	if opts.terminal {
		return demoTerminal(ctx, d, srv, in, out, demoGreeting(cfg, scripted))
	}
	return demoPage(ctx, opts, d, srv, scripted, scratch, out)
}

// demoTerminal has the user chat in the terminal.
func demoTerminal(ctx context.Context, d *demoBot, srv *telegram.Server, in, out *os.File, greeting string) error {
	d.watch = func(demo.Event) {}
	if err := d.start(ctx); err != nil {
		return err
	}
	return errors.Join(converse(ctx, srv, in, out, greeting), d.end())
}

// demoPerson is who sits at the terminal.
const demoPerson = demo.You

// demoConfig says whether the agents are scripted ones.
func demoConfig(ctx context.Context, opts demoOptions, srv *telegram.Server, scratch string) (cfg config.Config, scripted bool, err error) {
	cfg = config.Default()
	cfg.Telegram.Token = config.Secret(srv.Token())
	cfg.Telegram.APIBase = srv.URL()
	cfg.Telegram.AllowedUsers = []int64{int64(demo.You), int64(demo.Sam)}
	cfg.Telegram.AllowedGroups = []int64{int64(demo.TeamChat)}
	cfg.Telegram.GroupTrigger = "all"
	cfg.Telegram.Reactions = true
	cfg.Storage.Dir = filepath.Join(scratch, "state")
	dir := opts.dir
	if dir == "" {
		dir = filepath.Join(scratch, "project")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return cfg, false, fmt.Errorf("make the demo's project: %w", err)
		}
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return cfg, false, err
	}
	cfg.Projects.DefaultDir, cfg.Projects.Roots = dir, []string{dir}
	if !opts.scripted && loggedIn(ctx, &cfg) {
		return cfg, false, nil
	}
	bin := filepath.Join(scratch, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return cfg, false, err
	}
	programs, err := agent.Install(bin)
	if err != nil {
		return cfg, false, err
	}
	for name, value := range map[string]string{
		"DUCTOR_SIM_HOME": filepath.Join(scratch, "sim"),
		// A scripted agent takes any key for a log-in.
		"ANTHROPIC_API_KEY": "scripted", "OPENAI_API_KEY": "scripted", "GEMINI_API_KEY": "scripted", "COPILOT_GITHUB_TOKEN": "scripted",
	} {
		if err := os.Setenv(name, value); err != nil {
			return cfg, false, err
		}
	}
	a := &cfg.Agents
	a.Claude.Path, a.Codex.Path, a.Gemini.Path, a.Copilot.Path = programs.Claude, programs.Codex, programs.Gemini, programs.Copilot
	return cfg, true, nil
}

// lookPatience is how long the agents may take to say whether they can be used.
const lookPatience = 30 * time.Second

// loggedIn makes the first agent that can be used the default, and says whether there is one.
func loggedIn(ctx context.Context, cfg *config.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	usable := ""
	err := app.WithProbes(*cfg, func(providers []cli.Provider) {
		for _, p := range providers {
			if usable == "" && p.Auth(ctx).State == cli.Authenticated {
				usable = string(p.Agent())
			}
		}
	})
	if err != nil || usable == "" {
		return false
	}
	cfg.Agents.Default = usable
	return true
}

func demoGreeting(cfg config.Config, scripted bool) string {
	who, hint := "the agents that are logged in here", ""
	if scripted {
		who = "a scripted agent"
		hint = "It takes directions: try  look [[tool cmd=\"ls -la\"]] [[text \"**Done.**\"]]\n"
	}
	return fmt.Sprintf("A simulated Telegram chat with %s, working in %s.\n"+
		"Write a message. /model picks a model, /abort stops, #1 presses the first button, Ctrl-D ends.\n%s",
		who, cfg.Projects.DefaultDir, hint)
}

// converse is the user's side of the chat: on a terminal it redraws what grows, elsewhere it prints each
// message once it stands still.
func converse(ctx context.Context, srv *telegram.Server, in, out *os.File, greeting string) error {
	if err := srv.AwaitPoll(ctx); err != nil {
		return fmt.Errorf("wait for the bot: %w", err)
	}
	chat := srv.Private(demoPerson, "You")
	if term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) {
		return newScreen(chat, in, out).run(ctx, greeting)
	}
	fmt.Fprint(out, greeting)
	return script(ctx, chat, in, out)
}

// stillness is how long a chat must not change to count as standing still.
const stillness = 2500 * time.Millisecond
