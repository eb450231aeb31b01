package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func demoCommand() *cobra.Command {
	var opts demoOptions
	var terminal bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try ductor in the browser, without a token or an account",
		Long: "demo serves a simulated Telegram as a page on this machine and lets you be the user on the phone.\n" +
			"Agents that are logged in here answer. A tour shows what there is, with a scripted agent that " +
			"costs nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if terminal {
				return errors.New("demo --terminal is gone: the demo is a page now; with --open=false it prints the " +
					"address only")
			}
			return runDemo(cmd.Context(), opts, os.Stdout, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&opts.scripted, "scripted", false,
		"use only the scripted agent, even if a real one is logged in")
	cmd.Flags().StringVar(&opts.dir, "dir", "",
		"let the agents work in this directory (default: a small sample project)")
	cmd.Flags().StringVar(&opts.addr, "addr", "127.0.0.1:0", "listen on this address; port 0 picks a free port")
	cmd.Flags().BoolVar(&opts.browser, "open", true, "open the page in the browser")
	cmd.Flags().BoolVarP(&opts.verbose, "verbose", "v", false, "print ductor's log")
	cmd.Flags().BoolVar(&terminal, "terminal", false, "")
	cmd.Flags().Lookup("terminal").Hidden = true
	return cmd
}

type demoOptions struct {
	scripted bool
	dir      string
	verbose  bool
	browser  bool   // open the page in a browser
	addr     string // address on which the page is served
}

// runDemo runs ductor with a simulated Telegram. On a web page, the user writes to the bot and sees its messages.
func runDemo(ctx context.Context, opts demoOptions, out, stderr io.Writer) error {
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
	w, err := newScriptedWorld(filepath.Join(scratch, "tour"), opts.dirOfTour(len(worlds) == 0), log)
	if err != nil {
		return err
	}
	return demoPage(ctx, opts, append(worlds, w), scratch, out)
}

// dirOfTour returns the value of --dir if the scripted agents of the tour should work in that directory. They should if
// the demo consists of the tour alone. If real agents run, too, only the real agents use --dir, and dirOfTour returns
// "", which means a sample project.
func (o demoOptions) dirOfTour(alone bool) string {
	if alone {
		return o.dir
	}
	return ""
}
