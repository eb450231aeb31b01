package main

import (
	"context"
	"errors"
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

// buildBeat makes the jobs of the configuration those that are kept, and listens for webhooks if there are any.
func buildBeat(ctx context.Context, h *house) (*beat, error) {
	b := &beat{}
	b.scheduler = heartbeat.New(heartbeat.Options{
		Store: h.db, Runner: orders{h}, Notifier: results{h}, Now: time.Now, NewID: newID, Logger: h.log,
	})
	hooks, err := heartbeat.NewHooks(heartbeat.HookOptions{
		Hooks: hooksOf(h.cfg), Store: h.db, Now: time.Now, NewID: newID, Logger: h.log, Poke: b.scheduler.Poke,
	})
	if err != nil {
		return nil, coded{err, errConfig}
	}
	b.hooks = hooks
	jobs, err := jobsOf(h.cfg)
	if err != nil {
		return nil, coded{err, errConfig}
	}
	if err := b.scheduler.Sync(ctx, append(jobs, hooks.Jobs()...)); err != nil {
		return nil, coded{fmt.Errorf("jobs: %w", err), errConfig}
	}
	b.sweep = heartbeat.NewSweep(heartbeat.SweepOptions{
		Runs: h.service.Registry(), Now: time.Now, Logger: h.log, Every: sweepEvery,
		Notice: func(context.Context, cli.RunInfo) {}, // the card of its turn says it, and offers to run it again
		Ages: map[heartbeat.RunKind]time.Duration{
			heartbeat.RunOfChat: h.cfg.Agents.StaleAfter, heartbeat.RunOfJob: h.cfg.Agents.StaleAfter,
		},
	})
	b.retention = retentionOf(h.cfg, h.db, h.log)
	if len(h.cfg.Webhooks.Hooks) > 0 {
		b.listener, err = heartbeat.ListenHooks(ctx, heartbeat.ServerOptions{Addr: h.cfg.Webhooks.Listen, Remote: h.cfg.Webhooks.Remote})
	}
	return b, err
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

// orders is the heartbeat.Runner of the orchestrator.
type orders struct{ *house }

func (o orders) Ask(ctx context.Context, order heartbeat.Order) error {
	wants := orchestrator.Wants{
		Agent: order.Agent, Model: order.Model, Effort: order.Effort, Dir: order.Dir, Timeout: order.Timeout, Sandbox: order.Sandbox, Silence: order.OKWord,
	}
	if order.Session == heartbeat.OwnSession {
		wants.Own = string(order.Job)
	}
	err := o.desk.SubmitOrder(ctx, orchestrator.Order{Turn: order.Turn, Wants: wants, Prompt: orchestrator.Prompt{
		Conversation: order.Conversation, Person: order.Person, Text: order.Prompt,
	}})
	switch {
	case errors.Is(err, orchestrator.ErrQueueFull):
		return heartbeat.ErrNoRoom
	case errors.Is(err, orchestrator.ErrOutsideRoot), errors.Is(err, orchestrator.ErrNotADir):
		return fmt.Errorf("It cannot run in %s: %w: %w", order.Dir, err, heartbeat.ErrRefused)
	}
	return err
}

func (o orders) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	return o.db.Turn(ctx, id)
}

func (o orders) Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error) {
	st, err := o.desk.Status(ctx, id)
	return st.Running != nil || st.Queue > 0, err
}

// results is the heartbeat.Notifier. A run that had a turn was shown by the card of that turn, as it ran; what is left
// to say is why there was none.
type results struct{ *house }

func (r results) Report(ctx context.Context, report heartbeat.Report) error {
	_, err := r.db.Turn(ctx, report.Turn)
	if !errors.Is(err, orchestrator.ErrNoTurn) {
		return err
	}
	text := fmt.Sprintf("⚠️ The job %q did not run. %s", report.Job.Name, report.Run.Reason)
	return r.bot.Chat().Notice(ctx, report.Job.Conversation, text)
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
	if jobs, err := jobsOf(cfg); err != nil {
		d.fail("jobs", err.Error())
	} else if len(jobs)+len(cfg.Webhooks.Hooks) > 0 {
		d.ok("jobs", fmt.Sprintf("%d by schedule, %d by webhook", len(jobs), len(cfg.Webhooks.Hooks)))
	}
	db, err := store.Open(ctx, filepath.Join(cfg.Storage.Dir, databaseFile), store.Options{})
	if err != nil {
		return // the check of the storage says so
	}
	for _, f := range retentionOf(cfg, db, slog.New(slog.DiscardHandler)).DryRun(ctx) {
		if f.Err != nil {
			d.fail("forgetting", f.Err.Error())
			continue
		}
		d.ok("forgetting "+f.Name, fmt.Sprintf("%d of %d would go (%d KB)", f.Items, f.Items+f.LeftItems, f.Bytes>>10))
	}
	if err := db.Close(); err != nil {
		d.fail("storage", err.Error())
	}
}
