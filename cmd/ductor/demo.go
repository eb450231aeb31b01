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

	"ductor/internal/sim/telegram"
	"ductor/web/demo"
)

func demoCommand() *cobra.Command {
	var opts demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try ductor in the browser, without a token or an account",
		Long: "demo serves a simulated Telegram as a page on this machine and lets you be the user on the phone.\n" +
			"Agents that are logged in here answer. A tour shows what there is, with a scripted agent that costs nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), opts, os.Stdin, os.Stdout, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&opts.scripted, "scripted", false, "use the scripted agent alone, even if a real one is logged in")
	cmd.Flags().StringVar(&opts.dir, "dir", "", "the directory the agents work in (default: a small project, which goes with the demo)")
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
	if info, err := os.Stat(opts.dir); opts.dir != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--dir %s: there is no such directory", opts.dir)
	}
	scratch, err := os.MkdirTemp("", "ductor-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer os.RemoveAll(scratch)
	log := slog.New(slog.DiscardHandler)
	if opts.verbose {
		log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var worlds []*demoWorld
	defer func() {
		for _, w := range worlds {
			w.srv.Close()
		}
	}()
	if !opts.scripted {
		fmt.Fprintln(out, "Looking for agents that are logged in on this machine…")
		w, err := newDemoWorld(filepath.Join(scratch, "own"), opts.dir, log)
		if err != nil {
			return err
		}
		if loggedIn(ctx, &w.bot.cfg) {
			worlds = append(worlds, w)
		} else {
			w.srv.Close()
		}
	}
	if len(worlds) == 0 || !opts.terminal {
		w, err := newScriptedWorld(filepath.Join(scratch, "tour"), opts.dirOfTour(len(worlds) == 0), log)
		if err != nil {
			return err
		}
		worlds = append(worlds, w)
	}
	if opts.terminal {
		return demoTerminal(ctx, worlds[0], in, out)
	}
	return demoPage(ctx, opts, worlds, scratch, out)
}

// dirOfTour returns the directory that the user named, unless other agents work in it.
func (o demoOptions) dirOfTour(alone bool) string {
	if alone {
		return o.dir
	}
	return ""
}

// demoTerminal has the user chat in the terminal.
func demoTerminal(ctx context.Context, w *demoWorld, in, out *os.File) error {
	if err := w.bot.start(ctx); err != nil {
		return err
	}
	return errors.Join(converse(ctx, w.srv, in, out, w.greeting()), w.bot.end())
}

// demoPerson is who sits at the terminal.
const demoPerson = demo.You

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
