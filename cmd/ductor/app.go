package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/bot"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/host"
	"ductor/heartbeat/webhook"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/internal/supervisor"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// The names inside the storage directory.
const (
	databaseFile = "ductor.db"
	runsDir      = "runs" // what agents print, until their turns are stored
)

// How long each stage of an ordered end may take.
const (
	drainTurns   = 20 * time.Second // running turns may reach their end
	drainAgents  = 10 * time.Second // then everything that agents started is ended
	drainNotices = 10 * time.Second // messages that must arrive are sent
	drainCards   = 5 * time.Second  // cards of turns that go on show what their agents did so far
)

const (
	sweepEvery = time.Minute
	pruneEvery = 24 * time.Hour
	promptsAge = 24 * time.Hour // by then the agent has read its system prompt
)

// app is ductor: every package constructed and connected.
type app struct {
	cfg          config.Config
	log          *slog.Logger
	db           *store.DB
	host         *host.Launcher
	envs         environment.Environments
	service      *cli.Service
	orchestrator *conversation.Engine
	bot          *bot.Bot
	timers       *timers
	scrub        *tgapi.Scrubber
	stop         context.CancelFunc
	ticks        sync.WaitGroup
}

// buildApp constructs what ductor consists of, from the store up. Until run, only the sender of cards runs.
func buildApp(ctx context.Context, cfg config.Config, log *slog.Logger, scrub *tgapi.Scrubber) (_ *app, err error) {
	return buildAppWith(ctx, cfg, supervisor.Options{}, log, scrub)
}

// buildAppWith is buildApp with options for the start of supervisors.
func buildAppWith(ctx context.Context, cfg config.Config, start supervisor.Options, log *slog.Logger, scrub *tgapi.Scrubber) (_ *app, err error) {
	a := &app{cfg: cfg, log: log, scrub: scrub}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.host, err = openHost(cfg, start, log); err != nil {
		return nil, err
	}
	if a.envs, err = environment.Open(cfg, log); err != nil {
		return nil, err
	}
	if a.db, err = store.Open(ctx, filepath.Join(cfg.Storage.Dir, databaseFile), store.Options{}); err != nil {
		return nil, err
	}
	if err = a.tryDisk(ctx); err != nil {
		return nil, err
	}
	a.timers = newTimers(a)
	transport, err := transportOf(cfg)
	if err != nil {
		return nil, err
	}
	served := botOptions(cfg, a.db, log, scrub, transport)
	served.Jobs = a.jobs()
	if a.bot, err = bot.New(ctx, served); err != nil {
		return nil, err
	}
	if a.service, err = cli.NewService(serviceOptions(cfg, a, log)); err != nil {
		return nil, err
	}
	a.orchestrator = conversation.New(conversationOptions(cfg, a, log))
	if err = buildTimers(ctx, a); err != nil {
		return nil, err
	}
	return a, nil
}

// tryDisk refuses to start on a disk that reports errors: a restart every few seconds would repeat the same message
// and repair nothing. A full disk is only logged, since files may be deleted at any moment.
func (a *app) tryDisk(ctx context.Context) error {
	err := a.db.RetryDisk(ctx)
	if state, _ := a.db.Disk(); state == orchestrator.DiskFailed {
		return fmt.Errorf("%w; look after it, and start ductor again", err)
	}
	if err != nil {
		a.log.Warn("the disk may be full", "err", err)
	}
	return nil
}

// run serves until ctx ends, and then stops the jobs.
func (a *app) run(ctx context.Context) error {
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.ticks.Go(func() { a.timers.sweep.Run(ticking) })
	a.ticks.Go(func() { a.timers.retention.Run(ticking) })
	a.ticks.Go(func() { a.prune(ticking) })
	a.ticks.Go(func() { a.envs.Sandboxes.Run(ticking) })
	a.ticks.Go(func() { a.forgetCrashes(ticking) })
	a.service.Refresh()
	a.ticks.Go(func() { a.logAgents(ticking) })
	if err := a.orchestrator.Recover(ctx); err != nil {
		return err
	}
	// Jobs end before close or leave, so that none asks for a turn of an orchestrator that is closed.
	defer a.timers.start(ctx, a)()
	if err := supervisor.CanGroup(); err != nil {
		a.log.Info("agents get no control groups of their own; with Delegate=yes in ductor's unit they do", "why", err)
	}
	a.log.Info("ductor runs", "version", describe(), "storage", a.cfg.Storage.Dir)
	err := a.bot.Run(ctx, a.orchestrator)
	if errors.Is(err, bot.ErrToken) {
		return coded{fmt.Errorf("Telegram refuses the bot token; get the right one from @BotFather and set telegram.token"), errToken}
	}
	return err
}

// close ends what was built, the last first: it takes no new turns, waits for running ones, ends agents with all they
// started, sends what must arrive, and closes the database. An app that was built in part can be closed.
func (a *app) close() {
	if a.orchestrator != nil {
		a.stage(drainTurns, "turns", func(ctx context.Context) error { a.orchestrator.Close(ctx); return nil })
	}
	if a.service != nil {
		a.stage(drainAgents, "agents", a.service.Close)
	}
	a.closeRest()
}

// leave is close for a daemon that will start again: agents go on under their supervisors, and the next process
// resumes their turns.
func (a *app) leave() {
	a.stage(drainCards, "turns", func(ctx context.Context) error { a.orchestrator.Detach(ctx); return nil })
	a.stage(drainAgents, "agents", a.service.Detach)
	a.closeRest()
}

func (a *app) closeRest() {
	if a.bot != nil {
		a.stage(drainNotices, "messages", a.bot.Close)
	}
	if a.stop != nil {
		a.stop()
	}
	a.ticks.Wait()
	if a.timers != nil {
		a.timers.close()
	}
	if a.db != nil {
		a.stage(drainNotices, "database", func(context.Context) error { return a.db.Close() })
	}
	a.stage(drainAgents, "environments", func(context.Context) error { return a.envs.Close() })
	if a.host != nil {
		a.stage(drainAgents, "runs", func(context.Context) error { return a.host.Close() })
	}
}

// stage runs one step of the shutdown with a limit of time.
func (a *app) stage(limit time.Duration, what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := f(ctx); err != nil {
		a.log.Warn("shutdown", "stage", what, "err", err)
	}
}

// prune forgets once a day what is older than the owner wants to keep.
func (a *app) prune(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		before := time.Now().AddDate(0, 0, -a.cfg.Storage.RetentionDays)
		if pruned, err := a.db.Prune(ctx, before); err != nil && ctx.Err() == nil {
			a.log.Warn("forget what is old", "err", err)
		} else if err == nil {
			a.log.Debug("forgot what is old", "updates", pruned.Updates, "notices", pruned.Notices, "cards", pruned.Cards)
		}
		if err := prunePrompts(filepath.Join(a.cfg.Storage.Dir, environment.PromptsDir), time.Now().Add(-promptsAge)); err != nil {
			a.log.Warn("forget old system prompts", "err", err)
		}
		if _, err := a.db.PruneDeliveries(ctx, time.Now().Add(-webhook.RetentionAge)); err != nil && ctx.Err() == nil {
			a.log.Warn("forget old deliveries", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prunePrompts removes the system prompts of agents that ended long ago.
func prunePrompts(dir string, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
