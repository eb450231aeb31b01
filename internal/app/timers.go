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

// timers is what time and webhooks start.
type timers struct {
	scheduler *heartbeat.Scheduler
	sweep     heartbeat.Sweep
	retention heartbeat.Retention
	hooks     *webhook.Handler
	listener  net.Listener // of hooks; nil without one
}

// newTimers makes the scheduler. It runs no job before start.
func newTimers(a *App) *timers {
	return &timers{listener: a.Network.Webhooks, scheduler: heartbeat.New(heartbeat.Options{
		Store: a.db, Runner: orders{a}, Notifier: results{a}, Lang: a.lang, Now: time.Now, NewID: newID, Logger: a.Log,
		Directory: func(path string) (string, error) { return a.orchestrator.Directory(path) },
		Stale:     a.cfg.Agents.StaleAfter, Audit: a.db.RecordAudit,
	})}
}

// buildTimers stores the jobs of the configuration, and listens for webhooks if it has any.
func buildTimers(ctx context.Context, a *App) error {
	b := a.timers
	configured, err := Hooks(a.cfg)
	if err != nil {
		return OfKind(ErrConfig, err)
	}
	hooks, err := webhook.New(webhook.Options{
		Hooks: configured, Store: a.db, Now: time.Now, NewID: newID, Logger: a.Log, Poke: b.scheduler.Poke,
	})
	if err != nil {
		return OfKind(ErrConfig, err)
	}
	b.hooks = hooks
	jobs, err := Jobs(a.cfg)
	if err != nil {
		return OfKind(ErrConfig, err)
	}
	if err := b.scheduler.Sync(ctx, append(jobs, hooks.Jobs()...)); err != nil {
		return OfKind(ErrConfig, fmt.Errorf("jobs: %w", err))
	}
	stale := a.cfg.Agents.StaleAfter
	b.sweep = heartbeat.Sweep{Runs: a.service.Registry(), Now: time.Now, Logger: a.Log, Every: min(sweepEvery, stale/4), Age: stale}
	b.retention = retention(func() config.Config { return a.now().Config }, a.db, &a.envs, a.Log)
	if b.listener == nil && len(a.cfg.Webhooks.Hooks) > 0 {
		b.listener, err = webhook.Listen(ctx, a.cfg.Webhooks)
	}
	return err
}

// start runs jobs and answers webhooks until stop is called, which waits for their end.
func (b *timers) start(ctx context.Context, a *App) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { b.scheduler.Run(ctx) })
	if b.listener != nil {
		a.Log.Info("webhooks are listened for", "address", b.listener.Addr().String())
		all.Go(func() {
			if err := webhook.Serve(ctx, b.listener, b.hooks); err != nil {
				a.Log.Error("webhooks", "err", err)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// close closes the listener of webhooks; start may have done so.
func (b *timers) close() {
	if b.listener != nil {
		_ = b.listener.Close() // closed already, if it was served
	}
}

// turnStore is the store of the orchestrator. It calls ended as soon as a turn of a job ends.
type turnStore struct {
	*store.DB
	ended func()
}

func (s turnStore) FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	err := s.DB.FinishTurn(ctx, id, ended, o)
	if orchestrator.IsJobTurn(id) {
		s.ended()
	}
	return err
}

// jobEnded wakes the scheduler.
func (a *App) jobEnded() { a.timers.scheduler.Poke() }

// scheduleOf reads when a job of the configuration is due.
func scheduleOf(j heartbeat.JobSettings) (schedule.Spec, error) {
	if strings.HasPrefix(strings.ToLower(j.Schedule), "at ") {
		return schedule.Spec{Line: j.Schedule}, nil // the scheduler checks whether it is past
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
		err = fmt.Errorf("%q is another day each time that ductor starts; write %q", j.Schedule, said.Line)
	}
	return said, err
}

// orders is the heartbeat.Runner over the orchestrator.
type orders struct{ *App }

func (o orders) SubmitOrder(ctx context.Context, order orchestrator.Order) error {
	return o.orchestrator.SubmitOrder(ctx, order)
}

func (o orders) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	return o.db.Turn(ctx, id)
}

func (o orders) Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error) {
	st, err := o.orchestrator.Status(ctx, id)
	return st.Running != nil || st.Queue > 0, err
}

// results is the heartbeat.Notifier. The card of a turn shows its result, unless the result repeats what the chat shows
// already. results shows the rest: that a result was the same, and why a run got no turn.
type results struct{ *App }

func (r results) Report(ctx context.Context, report heartbeat.Report) error {
	err := r.show(ctx, report)
	if errors.Is(err, card.ErrNotYet) {
		return heartbeat.ErrLater
	}
	return err
}

func (r results) show(ctx context.Context, report heartbeat.Report) error {
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
