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
	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/internal/supervisor"
	"ductor/orchestrator"
)

// The names inside the storage directory.
const (
	databaseFile = "ductor.db"
	uploadsDir   = "uploads"
	promptsDir   = "prompts" // system prompts, for as long as the agent that was given them runs
	runsDir      = "runs"    // what agents print, until it is dealt with
	geminiDir    = "gemini"  // settings that Gemini is started with
)

// How long each stage of an ordered end may take.
const (
	drainTurns   = 20 * time.Second // running turns may end by themselves
	drainAgents  = 10 * time.Second // after that everything they started is ended
	drainLetters = 10 * time.Second // what must be delivered is delivered
	drainCards   = 5 * time.Second  // cards of turns that go on show how far those are
)

const (
	sweepEvery = time.Minute
	pruneEvery = 24 * time.Hour
	promptsAge = 24 * time.Hour // by then whoever was given a system prompt has read it
)

// house is every room, built and tied together.
type house struct {
	cfg     config.Config
	log     *slog.Logger
	db      *store.DB
	host    *cli.Host
	boxes   *sandboxes
	homes   *cli.HostHomes // nil where all sessions have the owner's home
	service *cli.Service
	desk    *orchestrator.Orchestrator
	bot     *bot.Bot
	beat    *beat
	scrub   *bot.Scrubber
	crashed bool // the process before this one did
	stop    context.CancelFunc
	ticks   sync.WaitGroup
}

// buildHouse constructs the rooms from the bottom up. Nothing runs yet but the sender of cards.
func buildHouse(ctx context.Context, cfg config.Config, log *slog.Logger, scrub *bot.Scrubber) (_ *house, err error) {
	return buildHouseOver(ctx, cfg, supervisor.Options{}, log, scrub)
}

// buildHouseOver is buildHouse with a say in how supervisors are started.
func buildHouseOver(ctx context.Context, cfg config.Config, start supervisor.Options, log *slog.Logger, scrub *bot.Scrubber) (_ *house, err error) {
	h := &house{cfg: cfg, log: log, scrub: scrub}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.host, err = openHost(cfg, start, log); err != nil {
		return nil, err
	}
	if err = h.openPlaces(); err != nil {
		return nil, err
	}
	if h.db, err = store.Open(ctx, filepath.Join(cfg.Storage.Dir, databaseFile), store.Options{}); err != nil {
		return nil, err
	}
	if err = h.tryDisk(ctx); err != nil {
		return nil, err
	}
	h.beat = newBeat(h)
	transport, err := transportOf(cfg)
	if err != nil {
		return nil, err
	}
	served := botOptions(cfg, h.db, log, scrub, transport)
	served.Jobs = h.jobs()
	if h.bot, err = bot.New(served); err != nil {
		return nil, err
	}
	if h.service, err = cli.NewService(serviceOptions(cfg, h, log)); err != nil {
		return nil, err
	}
	h.desk = orchestrator.New(orchestratorOptions(cfg, h, log))
	if err = buildBeat(ctx, h); err != nil {
		return nil, err
	}
	return h, nil
}

// tryDisk refuses to start over a disk that reports errors: whoever is told of one at each start, every few seconds,
// is not helped. One that is full may have room in a moment.
func (h *house) tryDisk(ctx context.Context) error {
	err := h.db.RetryDisk(ctx)
	if state, _ := h.db.Disk(); state == orchestrator.DiskFailed {
		return fmt.Errorf("%w; look after it, and start ductor again", err)
	}
	if err != nil {
		h.log.Warn("the disk may be full", "err", err)
	}
	return nil
}

// openPlaces opens where agents run and live besides this machine and its owner's home.
func (h *house) openPlaces() (err error) {
	if h.boxes, err = openSandboxes(h.cfg, h.log); err != nil {
		return err
	}
	h.homes, err = openHomes(h.cfg)
	return err
}

// run serves until ctx ends, and then ends the rooms from the top down.
func (h *house) run(ctx context.Context) error {
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.ticks.Go(func() { h.beat.sweep.Run(ticking) })
	h.ticks.Go(func() { h.beat.retention.Run(ticking) })
	h.ticks.Go(func() { h.prune(ticking) })
	h.ticks.Go(func() { h.boxes.run(ticking) })
	if h.crashed {
		h.ticks.Go(func() { h.outliveCrash(ticking) })
	}
	h.service.Refresh()
	h.ticks.Go(func() { h.tellAgents(ticking) })
	if err := h.desk.Recover(ctx); err != nil {
		return err
	}
	// No turn of a job is asked for any more once the rooms are left.
	defer h.beat.start(ctx, h)()
	if err := supervisor.CanGroup(); err != nil {
		h.log.Info("agents get no control groups of their own; with Delegate=yes in ductor's unit they do", "why", err)
	}
	h.log.Info("ductor runs", "version", describe(), "storage", h.cfg.Storage.Dir)
	err := h.bot.Run(ctx, h.desk)
	if errors.Is(err, bot.ErrToken) {
		return coded{fmt.Errorf("Telegram refuses the bot token; get the right one from @BotFather and set telegram.token"), errToken}
	}
	return err
}

// close ends what was built, the last first: no new turns, running ones get their time, agents die with
// all they started, the chat is told, the database is closed. Safe on a house that was half built.
func (h *house) close() {
	if h.desk != nil {
		h.stage(drainTurns, "turns", func(ctx context.Context) error { h.desk.Close(ctx); return nil })
	}
	if h.service != nil {
		h.stage(drainAgents, "agents", h.service.Close)
	}
	h.closeRest()
}

// leave is close for a daemon that is to be started again: turns and agents are let go of and go on, and the
// next ductor takes them up.
func (h *house) leave() {
	h.stage(drainCards, "turns", func(ctx context.Context) error { h.desk.Detach(ctx); return nil })
	h.stage(drainAgents, "agents", h.service.Detach)
	h.closeRest()
}

func (h *house) closeRest() {
	if h.bot != nil {
		h.stage(drainLetters, "messages", h.bot.Close)
	}
	if h.stop != nil {
		h.stop()
	}
	h.ticks.Wait()
	if h.beat != nil {
		h.beat.close()
	}
	if h.db != nil {
		h.stage(drainLetters, "database", func(context.Context) error { return h.db.Close() })
	}
	if h.homes != nil {
		h.stage(drainAgents, "homes", func(context.Context) error { return h.homes.Close() })
	}
	if h.boxes != nil {
		h.stage(drainAgents, "sandboxes", func(context.Context) error { return h.boxes.close() })
	}
	if h.host != nil {
		h.stage(drainAgents, "runs", func(context.Context) error { return h.host.Close() })
	}
}

// stage gives one step of an end its time.
func (h *house) stage(limit time.Duration, what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := f(ctx); err != nil {
		h.log.Warn("shutdown", "stage", what, "err", err)
	}
}

// prune forgets once a day what is older than the owner wants to keep.
func (h *house) prune(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		before := time.Now().AddDate(0, 0, -h.cfg.Storage.RetentionDays)
		if pruned, err := h.db.Prune(ctx, before); err != nil && ctx.Err() == nil {
			h.log.Warn("forget what is old", "err", err)
		} else if err == nil {
			h.log.Debug("forgot what is old", "updates", pruned.Updates, "letters", pruned.Letters, "cards", pruned.Cards)
		}
		if err := prunePrompts(filepath.Join(h.cfg.Storage.Dir, promptsDir), time.Now().Add(-promptsAge)); err != nil {
			h.log.Warn("forget old system prompts", "err", err)
		}
		if _, err := h.db.ForgetHooks(ctx, time.Now().Add(-heartbeat.SealAge)); err != nil && ctx.Err() == nil {
			h.log.Warn("forget old deliveries", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prunePrompts removes what was kept for agents that are long gone.
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
