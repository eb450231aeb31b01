package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// beat is the heartbeat room, tied to the others.
type beat struct {
	scheduler *heartbeat.Scheduler
	sweep     *heartbeat.Sweep
	retention *heartbeat.Retention
	hooks     *heartbeat.Hooks
	listener  net.Listener // of hooks; nil without one
}

// newBeat makes what keeps jobs. It runs nothing, and asks the other rooms for nothing before start.
func newBeat(h *house) *beat {
	return &beat{scheduler: heartbeat.New(heartbeat.Options{
		Store: h.db, Runner: orders{h}, Notifier: results{h}, Now: time.Now, NewID: newID, Logger: h.log,
	})}
}

// jobs is what the chat does with jobs.
func (h *house) jobs() orchestrator.Jobs {
	desk := heartbeat.NewDesk(h.beat.scheduler, heartbeat.DeskOptions{
		Directory: func(path string) (string, error) { return h.desk.Directory(path) }, Stale: h.cfg.Agents.StaleAfter,
	})
	return orchestrator.AuditJobs(desk, h.db, time.Now, h.log)
}

// buildBeat makes the jobs of the configuration those that are kept, and listens for webhooks if there are any.
func buildBeat(ctx context.Context, h *house) error {
	b := h.beat
	configured, err := hooksOf(h.cfg)
	if err != nil {
		return coded{err, errConfig}
	}
	hooks, err := heartbeat.NewHooks(heartbeat.HookOptions{
		Hooks: configured, Store: h.db, Now: time.Now, NewID: newID, Logger: h.log, Poke: b.scheduler.Poke,
	})
	if err != nil {
		return coded{err, errConfig}
	}
	b.hooks = hooks
	jobs, err := jobsOf(h.cfg)
	if err != nil {
		return coded{err, errConfig}
	}
	if err := b.scheduler.Sync(ctx, append(jobs, hooks.Jobs()...)); err != nil {
		return coded{fmt.Errorf("jobs: %w", err), errConfig}
	}
	b.sweep = heartbeat.NewSweep(heartbeat.SweepOptions{
		Runs: h.service.Registry(), Now: time.Now, Logger: h.log,
		Every:  min(sweepEvery, h.cfg.Agents.StaleAfter/4),
		Notice: func(context.Context, cli.RunInfo) {}, // the card of its turn says it, and offers to run it again
		Ages: map[heartbeat.RunKind]time.Duration{
			heartbeat.RunOfChat: h.cfg.Agents.StaleAfter, heartbeat.RunOfJob: h.cfg.Agents.StaleAfter,
		},
	})
	b.retention = h.retention()
	if len(h.cfg.Webhooks.Hooks) > 0 {
		b.listener, err = heartbeat.ListenHooks(ctx, heartbeat.ServerOptions{Addr: h.cfg.Webhooks.Listen, Remote: h.cfg.Webhooks.Remote})
	}
	return err
}

// start has jobs run and webhooks answered, until the function it returns is called; that one waits for their end.
func (b *beat) start(ctx context.Context, h *house) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { b.scheduler.Run(ctx) })
	if b.listener != nil {
		h.log.Info("webhooks are listened for", "address", b.listener.Addr().String())
		all.Go(func() {
			if err := heartbeat.ServeHooks(ctx, b.listener, b.hooks); err != nil {
				h.log.Error("webhooks", "err", err)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// close ends what start would have served; safe after it.
func (b *beat) close() {
	if b.listener != nil {
		_ = b.listener.Close() // closed already, if it was served
	}
}

// deskStore is the store of the orchestrator. It has the scheduler look as soon as a turn of a job ends.
type deskStore struct {
	*store.DB
	ended func()
}

func (s deskStore) FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	err := s.DB.FinishTurn(ctx, id, ended, o)
	if heartbeat.IsJobTurn(id) {
		s.ended()
	}
	return err
}

// jobEnded reaches the scheduler, which is built after the orchestrator.
func (h *house) jobEnded() { h.beat.scheduler.Poke() }

func uploadsOf(cfg config.Config) heartbeat.Files {
	return heartbeat.Files{Dir: filepath.Join(cfg.Storage.Dir, uploadsDir)}
}

// scheduleOf reads when a job of the configuration is due.
func scheduleOf(j config.Job) (heartbeat.Said, error) {
	if strings.HasPrefix(strings.ToLower(j.Schedule), "at ") {
		return heartbeat.Said{Schedule: j.Schedule}, nil // it may be over, which is for the scheduler to see
	}
	loc := time.Local
	if j.Zone != "" {
		zone, err := time.LoadLocation(j.Zone)
		if err != nil {
			return heartbeat.Said{}, err
		}
		loc = zone
	}
	said, err := heartbeat.ParseSentence(j.Schedule, time.Now(), loc)
	if err == nil && strings.HasPrefix(said.Schedule, "at ") {
		err = fmt.Errorf("%q is another day each time that ductor starts; write %q", j.Schedule, said.Schedule)
	}
	return said, err
}

// beat says whether the schedules can be read, and what the next round of forgetting would take.
func (d *doctor) beat(ctx context.Context, cfg config.Config) {
	if _, err := hooksOf(cfg); err != nil {
		d.fail("webhooks", err.Error())
	}
	if jobs, err := jobsOf(cfg); err != nil {
		d.fail("jobs", err.Error())
	} else if len(jobs)+len(cfg.Webhooks.Hooks) > 0 {
		d.ok("jobs", fmt.Sprintf("%d by schedule, %d by webhook", len(jobs), len(cfg.Webhooks.Hooks)))
	}
	db, err := store.Look(ctx, filepath.Join(cfg.Storage.Dir, databaseFile), store.Options{})
	if err != nil {
		return // the check of the storage says why
	}
	h := &house{cfg: cfg, log: slog.New(slog.DiscardHandler), db: db}
	defer h.closeRest()
	if err := h.openPlaces(); err != nil {
		d.fail("forgetting", err.Error())
		return
	}
	for _, f := range h.retention().DryRun(ctx) {
		if f.Err != nil {
			d.fail("forgetting", f.Err.Error())
			continue
		}
		d.ok("forgetting "+f.Name, fmt.Sprintf("%d of %d would go (%d KB)", f.Items, f.Items+f.LeftItems, f.Bytes>>10))
	}
}
