package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"ductor/bot/card"
	"ductor/cli"
	"ductor/heartbeat"
	"ductor/heartbeat/schedule"
	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// timers starts jobs at their scheduled times, and when a webhook is called.
type timers struct {
	scheduler *heartbeat.Scheduler
	sweep     heartbeat.Sweep
	retention heartbeat.Retention
	hooks     *webhook.Handler
	listener  net.Listener // accepts calls of webhooks; nil without webhooks
}

// newTimers creates the scheduler. It runs no job before start.
func newTimers(a *App) *timers {
	return &timers{listener: a.Network.Webhooks, scheduler: heartbeat.New(heartbeat.Options{
		Store: a.db, Runner: jobRunner{a}, Notifier: jobNotifier{a}, Lang: a.lang, Now: time.Now, NewID: newID,
		Logger:    a.Log,
		Directory: func(path string) (string, error) { return a.orchestrator.Directory(path) },
		MayRun:    a.jobMayRun, Stale: a.cfg.Agents.StaleAfter, Audit: a.db.RecordAudit,
	})}
}

// buildTimers stores the configured jobs, and opens the listener for webhooks if any are configured.
func buildTimers(ctx context.Context, a *App) error {
	b := a.timers
	configured, err := Hooks(a.cfg, a.now().policy)
	if err != nil {
		return WithKind(ErrConfig, err)
	}
	hooks, err := webhook.New(webhook.Options{
		Hooks: configured, Store: a.db, Now: time.Now, NewID: newID, Logger: a.Log, Poke: b.scheduler.Poke,
	})
	if err != nil {
		return WithKind(ErrConfig, err)
	}
	b.hooks = hooks
	jobs, err := Jobs(a.cfg, a.now().policy)
	if err != nil {
		return WithKind(ErrConfig, err)
	}
	if err := b.scheduler.Sync(ctx, append(jobs, hooks.Jobs()...)); err != nil {
		return WithKind(ErrConfig, fmt.Errorf("jobs: %w", err))
	}
	stale := a.cfg.Agents.StaleAfter
	b.sweep = heartbeat.Sweep{Runs: a.service.Registry(), Now: time.Now, Logger: a.Log, Every: min(sweepEvery, stale/4),
		Age: stale}
	b.retention = retention(func() config.Config { return a.now().Config }, a.db, &a.envs, a.Log)
	if b.listener == nil && len(a.cfg.Webhooks.Hooks) > 0 {
		b.listener, err = webhook.Listen(ctx, a.cfg.Webhooks)
	}
	return err
}

// start runs jobs and serves webhooks, until the caller calls stop.
func (b *timers) start(ctx context.Context, a *App) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { b.scheduler.Run(ctx) })
	if b.listener != nil {
		a.Log.Info("listen for webhooks", "address", b.listener.Addr().String())
		all.Go(func() {
			if err := webhook.Serve(ctx, b.listener, b.hooks); err != nil {
				a.Log.Error("serve webhooks", "err", err)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

func (b *timers) close() {
	if b.listener != nil {
		_ = b.listener.Close() // Serve may have closed it
	}
}

// turnStore is the store of the orchestrator. It calls onJobEnd after the turn of a job has ended.
type turnStore struct {
	*store.DB
	onJobEnd func()
}

func (s turnStore) FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	err := s.DB.FinishTurn(ctx, id, ended, o)
	if orchestrator.IsJobTurn(id) {
		s.onJobEnd()
	}
	return err
}

// jobEnded lets the scheduler check whether the next job can start.
func (a *App) jobEnded() { a.timers.scheduler.Poke() }

func scheduleOf(j heartbeat.JobSettings) (schedule.Spec, error) {
	if strings.HasPrefix(strings.ToLower(j.Schedule), "at ") {
		// The schedule is a single time. The scheduler checks whether this time is in the past.
		return schedule.Spec{Line: j.Schedule}, nil
	}
	loc := time.Local
	if j.Zone != "" {
		zone, err := time.LoadLocation(j.Zone)
		if err != nil {
			return schedule.Spec{}, err
		}
		loc = zone
	}
	said, err := schedule.ParseSentence(j.Schedule, time.Now(), loc)
	if err == nil && strings.HasPrefix(said.Line, "at ") {
		err = fmt.Errorf("%q means another day at each start of ductor; write %q", j.Schedule, said.Line)
	}
	return said, err
}

// jobRunner implements heartbeat.Runner.
type jobRunner struct{ *App }

func (o jobRunner) SubmitOrder(ctx context.Context, order orchestrator.Order) error {
	return o.orchestrator.SubmitOrder(ctx, order)
}

func (o jobRunner) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	return o.db.Turn(ctx, id)
}

func (o jobRunner) Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error) {
	st, err := o.orchestrator.Status(ctx, id)
	return st.Running != nil || len(st.Queue) > 0, err
}

// jobNotifier implements heartbeat.Notifier. The card of a turn already shows the turn's result. So jobNotifier reports
// only two things: that a result is the same as before, and why a run had no turn.
type jobNotifier struct{ *App }

func (r jobNotifier) Report(ctx context.Context, report heartbeat.Report) error {
	err := r.showResult(ctx, report)
	if errors.Is(err, card.ErrNotYet) {
		return heartbeat.ErrLater
	}
	return err
}

func (r jobNotifier) showResult(ctx context.Context, report heartbeat.Report) error {
	if report.Silent {
		t, err := r.db.Turn(ctx, report.Result.Shown)
		if err != nil {
			return err
		}
		if !t.Delivered {
			return card.ErrNotYet
		}
		return r.bot.Chat().Remark(ctx, t, report.Note)
	}
	_, err := r.db.Turn(ctx, report.Turn)
	if !errors.Is(err, orchestrator.ErrNoTurn) {
		return err
	}
	never := orchestrator.Turn{ID: report.Turn, Prompt: orchestrator.Prompt{Conversation: report.Job.Conversation}}
	return r.bot.Chat().Say(ctx, never, report.Note, report.Job.ID)
}
