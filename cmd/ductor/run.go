package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"ductor/internal/config"
)

func runCommand(env config.Environment) *cobra.Command {
	var from *source
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve the bot until stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load()
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, cmd.ErrOrStderr())
		},
	}
	from = sourceOf(cmd, env)
	return cmd
}

// serve runs the app until ctx ends. Agents that work go on, and the next start resumes their turns. A second signal
// ends ductor without waiting for the chat.
func serve(ctx context.Context, cfg config.Config, stderr io.Writer) error {
	scrub := newScrubber(cfg)
	log, closeLog, err := openLog(cfg.Log, scrub, stderr)
	if err != nil {
		return err
	}
	defer closeLog()
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "doubt", w)
	}
	release, err := lockInstance(lockDir(), cfg.Telegram.Token.Reveal(), cfg.Storage.Dir)
	if err != nil {
		return err
	}
	defer release()
	if err := makeDefaultRoot(cfg); err != nil {
		return err
	}
	a, err := buildApp(ctx, cfg, log, scrub)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if err := a.watchCrashes(ctx); err != nil {
		log.Warn("look for a crash", "err", err)
	}
	a.tellChanges(ctx)
	runErr := unlessStopped(ctx, a.run(ctx))
	end := make(chan struct{})
	go func() { a.leave(); close(end) }()
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	select {
	case <-end:
		return runErr
	case <-again:
		return fmt.Errorf("ended at once by a second signal; what was not delivered is delivered after the next start")
	}
}

// unlessStopped is err, and nil for what only failed because we were told to stop while starting.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// lockDir is the same for every configuration of a user, so that two of them with one token meet there.
func lockDir() string { return filepath.Join(config.StateDir(), "locks") }
