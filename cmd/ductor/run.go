package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/doctor"
	"ductor/orchestrator"
)

// runCommand returns the command that runs the bot. It only loads the configuration, and sets *run to a function that
// runs the bot.
func runCommand(env config.Environment, run *func(context.Context) error) *cobra.Command {
	var from *source
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the bot until stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load()
			if err != nil {
				return err
			}
			stderr := cmd.ErrOrStderr()
			*run = func(ctx context.Context) error { return serve(ctx, cfg, from.load, stderr) }
			return nil
		},
	}
	from = sourceOf(cmd, env)
	return cmd
}

// serve runs ductor until ctx is done. The agents then continue to work, and the next ductor process continues their
// turns. A second signal makes serve return without waiting for messages to be sent. After SIGHUP, serve calls load to
// read the configuration again. If the database is damaged, serve starts ductor again with a new database.
func serve(ctx context.Context, cfg config.Config, load func() (config.Config, error), stderr io.Writer) error {
	hangups := make(chan os.Signal, 1) // buffered, because a signal may arrive before any goroutine reads the channel
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	scrub := app.NewScrubber(cfg)
	log, err := app.OpenLog(cfg.Log, scrub, stderr)
	if err != nil {
		return err
	}
	defer log.Close()
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "doubt", w)
	}
	release, err := app.LockInstance(cfg)
	if err != nil {
		return err
	}
	defer release()
	if err := app.MakeDefaultRoot(cfg); err != nil {
		return err
	}
	opts := app.Options{Log: log.Logger, Level: log.Level, Load: load, Scrub: scrub, Version: describe(),
		Examine: doctor.Report}
	for range mostDamages {
		if err = live(ctx, cfg, opts, hangups, log); !errors.Is(err, orchestrator.ErrDamaged) {
			break
		}
		opts.Damaged = err
	}
	return err
}

// mostDamages limits how often serve starts again because of a damaged database.
const mostDamages = 3

// live builds one app and runs it until the app ends.
func live(ctx context.Context, cfg config.Config, opts app.Options, hangups <-chan os.Signal, log *app.Log) error {
	a, err := app.Build(ctx, cfg, opts)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if err := a.WatchCrashes(ctx); err != nil {
		log.Warn("check for a crash of the previous process", "err", err)
	}
	a.NotifyOfChanges(ctx)
	stop := a.ServeHangups(ctx, hangups, log)
	runErr := unlessStopped(ctx, a.Run(ctx))
	stop()
	end := make(chan struct{})
	go func() { a.Leave(); close(end) }()
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	select {
	case <-end:
		return runErr
	case <-again:
		return fmt.Errorf("a second signal ended ductor at once; the next start delivers the remaining messages")
	}
}

// unlessStopped returns nil if ctx is done and err is the error of ctx. Otherwise it returns err.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
