package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/bot"
	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// The names inside the storage directory.
const (
	databaseFile = "ductor.db"
	uploadsDir   = "uploads"
	promptsDir   = "prompts" // system prompts, for as long as the agent that was given them runs
)

// How long each stage of an ordered end may take.
const (
	drainTurns   = 20 * time.Second // running turns may end by themselves
	drainAgents  = 10 * time.Second // after that everything they started is ended
	drainLetters = 10 * time.Second // what must be delivered is delivered
)

// cutSlack is what a second signal waits beyond the agents' own grace.
const cutSlack = 2 * time.Second

const (
	sweepEvery = time.Minute
	pruneEvery = 24 * time.Hour
	reapEvery  = 10 * time.Second
)

// house is every room, built and tied together.
type house struct {
	cfg     config.Config
	log     *slog.Logger
	db      *store.DB
	host    *cli.Host
	service *cli.Service
	desk    *orchestrator.Orchestrator
	bot     *bot.Bot
	stop    context.CancelFunc
	ticks   sync.WaitGroup
}

// buildHouse constructs the rooms from the bottom up. Nothing runs yet but the sender of cards.
func buildHouse(ctx context.Context, cfg config.Config, log *slog.Logger, scrub *bot.Scrubber) (_ *house, err error) {
	h := &house{cfg: cfg, log: log, host: cli.NewHostFor(cli.Owner(cfg.Storage.Dir))}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if err := h.host.BecomeSubreaper(); err != nil {
		return nil, err
	}
	if h.db, err = store.Open(ctx, filepath.Join(cfg.Storage.Dir, databaseFile), store.Options{}); err != nil {
		return nil, err
	}
	transport, err := transportOf(cfg)
	if err != nil {
		return nil, err
	}
	if h.bot, err = bot.New(botOptions(cfg, h.db, log, scrub, transport)); err != nil {
		return nil, err
	}
	if h.service, err = cli.NewService(serviceOptions(cfg, h.providers(), log)); err != nil {
		return nil, err
	}
	h.desk = orchestrator.New(orchestratorOptions(cfg, h, log))
	return h, nil
}

// run serves until ctx ends, and then ends the rooms from the top down.
func (h *house) run(ctx context.Context) error {
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.ticks.Go(func() { h.host.ReapOrphans(ticking, reapEvery) })
	h.ticks.Go(func() {
		h.service.Registry().Sweep(ticking, sweepEvery, h.cfg.Agents.StaleAfter, func(r cli.RunInfo) {
			h.log.Warn("ended a run that was far too old", "conversation", r.Conversation, "agent", r.Agent, "started", r.Started)
		})
	})
	h.ticks.Go(func() { h.prune(ticking) })
	h.endLeftovers(ctx)
	h.service.Refresh()
	if err := h.desk.Recover(ctx); err != nil {
		return err
	}
	h.log.Info("ductor runs", "version", describe(), "storage", h.cfg.Storage.Dir)
	err := h.bot.Run(ctx, h.desk)
	if errors.Is(err, bot.ErrToken) {
		return coded{fmt.Errorf("Telegram refuses the bot token; get the right one from @BotFather and set telegram.token"), errToken}
	}
	return err
}

// endLeftovers ends what a ductor that was killed left running here, and removes what it kept for that,
// before any of its turns is offered to be run again. What would not end is no reason to answer nobody.
func (h *house) endLeftovers(ctx context.Context) {
	n, err := h.host.EndLeftovers(ctx, h.cfg.Agents.Grace)
	if err != nil {
		h.log.Error("processes of a run that was killed may be left", "found", n, "err", err)
	} else if n > 0 {
		h.log.Warn("ended what a run that was killed had left", "processes", n)
	}
	if err := os.RemoveAll(filepath.Join(h.cfg.Storage.Dir, promptsDir)); err != nil {
		h.log.Warn("remove what a run that was killed had left", "err", err)
	}
}

// close ends what was built, the last first: no new turns, running ones get their time, agents die with
// all they started, the chat is told, the database is closed. Safe on a house that was half built.
func (h *house) close() {
	stage := func(limit time.Duration, what string, f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := f(ctx); err != nil {
			h.log.Warn("shutdown", "stage", what, "err", err)
		}
	}
	if h.desk != nil {
		stage(drainTurns, "turns", func(ctx context.Context) error { h.desk.Close(ctx); return nil })
	}
	if h.service != nil {
		stage(drainAgents, "agents", h.service.Close)
	}
	if h.bot != nil {
		stage(drainLetters, "messages", h.bot.Close)
	}
	if h.stop != nil {
		h.stop()
	}
	h.ticks.Wait()
	if h.db != nil {
		stage(drainLetters, "database", func(context.Context) error { return h.db.Close() })
	}
}

// cut ends at once what must not outlive ductor: the agents and all they started. What the chat was not
// told it is told after the next start.
func (h *house) cut() {
	ctx, cancel := context.WithTimeout(context.Background(), h.cfg.Agents.Grace+cutSlack)
	defer cancel()
	if err := h.service.Close(ctx); err != nil {
		h.log.Error("agents may have been left behind", "err", err)
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
		if files, err := h.bot.PruneUploads(before); err != nil {
			h.log.Warn("forget old uploads", "err", err)
		} else if files > 0 {
			h.log.Info("forgot old uploads", "files", files)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
