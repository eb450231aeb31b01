package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"ductor/bot"
	"ductor/bot/outbox"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/internal/alerts"
	"ductor/internal/health"
	"ductor/internal/metrics"
	"ductor/internal/trace"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/web"
)

// monitor makes health and metrics available to monitoring systems.
type monitor struct {
	calls *metrics.Calls // counts calls to Telegram
	site  *web.Server    // serves health and metrics over HTTP; nil if disabled
}

// pollSlack is how long a busy machine may take to handle updates after it has received them.
const pollSlack = 2 * time.Minute

// openHealth creates the health monitor, and opens the HTTP listener if one is configured. The caller must call
// afterPoll after each poll for updates.
func (a *App) openHealth() (afterPoll func(error, time.Duration), err error) {
	a.health = health.New(health.Options{Store: a.db, Poll: updates.PollMost(bot.PollTimeout) + pollSlack,
		Now: time.Now})
	if listen := a.cfg.Health.Listen; listen != "" {
		if a.monitor.site, err = web.Listen(listen); err != nil {
			return nil, fmt.Errorf("health.listen: %w", err)
		}
	}
	return a.health.Polled, nil
}

// watchHealth reports ductor's health to systemd and to monitoring systems until ctx ends. The function stop notifies
// systemd that ductor is stopping.
func (a *App) watchHealth(ctx context.Context) (stop func()) {
	manager := health.ManagerOf(a.Log)
	if manager.Notify != nil || a.monitor.site != nil {
		a.background.Go(func() { a.health.Run(ctx, manager) })
	}
	if w := a.alerts(); w != nil {
		a.background.Go(func() { w.Run(ctx) })
	}
	if a.monitor.site != nil {
		a.Log.Info("monitors are answered", "address", a.monitor.site.Origin())
		a.background.Go(func() {
			if err := a.monitor.site.Serve(ctx, web.Site{Open: a.forMonitors()}); err != nil {
				a.Log.Error("monitors get no answer", "err", err)
			}
		})
	}
	return manager.Stopping
}

// alerts returns the watcher that sends messages about problems to the owner. It returns nil if alerts are disabled or
// no owner is configured.
func (a *App) alerts() *alerts.Watcher {
	owner := orchestrator.ConversationID{Chat: int64(ownerOf(a.cfg))}
	if !a.cfg.Notify.Alerts || owner.Chat == 0 {
		return nil
	}
	p := func() lang.Printer { return a.lang.Of(owner.Chat) }
	checks := []alerts.Check{
		alerts.Telegram(p, a.health.State), alerts.Disk(p, a.cfg.Storage.Dir, alerts.Room), alerts.Jobs(p, a.db),
		alerts.Rows(p, a.db.Unreadable), alerts.Limits(p, a.db.PlanLimits, time.Now),
	}
	checks = append(checks, alerts.Budget(p, budgetToWatch{a}, time.Now))
	if a.envs.Sandboxes.Policy().OnHost() {
		checks = append(checks, alerts.LogIns(p, a.accounts, a.db.Usage, time.Now))
	}
	return alerts.New(alerts.Options{
		Store: a.db, Checks: checks, Compose: func(text string, logIn orchestrator.LogInID) *orchestrator.Message {
			return a.bot.Chat().Composed(owner, text, logIn)
		},
		Wake: a.bot.Chat().Wake, Since: func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") },
		Now: time.Now, Log: a.Log,
	})
}

// accounts returns the accounts of all agents on this machine, with their log-in states.
func (a *App) accounts(ctx context.Context) (all []cli.MenuEntry) {
	for _, agent := range a.service.Agents(ctx, "") {
		all = append(all, a.service.Accounts(ctx, "", agent.Agent)...)
	}
	return all
}

// budgetToWatch implements alerts.Spending for the budget of all users.
type budgetToWatch struct{ a *App }

// Since implements alerts.Spending.
func (b budgetToWatch) Since(ctx context.Context, since time.Time) (float64, error) {
	return b.a.db.CostSince(ctx, since, 0, "")
}

// Lifted implements alerts.Spending.
func (b budgetToWatch) Lifted(ctx context.Context) (bool, error) {
	return b.a.db.BudgetsLifted(ctx, time.Now().Local().Format(time.DateOnly))
}

// Limits implements alerts.Spending. It returns zero if only one user can use ductor, because ductor already warns this
// user below each turn.
func (b budgetToWatch) Limits() (day, month float64) {
	cfg := b.a.now()
	if t := cfg.Telegram; len(t.AllowedUsers) > 1 || t.GroupMembers == "all" {
		return cfg.Budget.Day, cfg.Budget.Month
	}
	return 0, 0
}

// countedTransport returns a transport to Telegram that counts the calls in a.monitor.calls.
func (a *App) countedTransport() (http.RoundTripper, error) {
	a.monitor.calls = metrics.NewCalls()
	if a.Network.Telegram != nil {
		return a.monitor.calls.Transport(a.Network.Telegram), nil
	}
	t, err := Transport(a.cfg)
	if err != nil {
		return nil, err
	}
	return a.monitor.calls.Transport(t), nil
}

// forMonitors returns the handler of the pages that monitoring systems read, without authentication.
func (a *App) forMonitors() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", a.health)
	mux.Handle("GET /metrics", metrics.Handler(metrics.Sources{
		Turns: a.tracer.Measures, Live: a.Live, Load: a.db.Load, Store: a.db.Size, Outbox: a.bot.Backlog,
		Health: a.health.State,
		Calls:  a.monitor.calls, Log: a.Log,
	}))
	return mux
}

// Live returns the live sessions of agents, and how much memory their processes use.
func (a *App) Live(ctx context.Context) cli.Living { return a.service.Live(ctx) }

// Budgets returns, for each chat, how many messages ductor may send now.
func (a *App) Budgets() []outbox.Budget { return a.bot.Budgets() }

// openTracer creates the tracer if a collector is configured or metrics are served. Otherwise the tracer stays nil.
func (a *App) openTracer() {
	t := a.cfg.Tracing
	if t.URL == "" && a.monitor.site == nil {
		return
	}
	a.tracer = trace.New(trace.Options{
		Settings: t, Key: os.Getenv(t.KeyFrom), Version: a.Version, Now: time.Now, Log: a.Log,
		Hide: func(dir, text string) string { return a.secretsOf(dir).String(text) },
	})
}

// gateway returns the gateway to the agents. It adds facts about configured models to the menu.
func (a *App) gateway() orchestrator.Gateway {
	return configuredModels{a.service, func() map[string]naming.Alias { return a.now().Models }}
}

// turnTracer returns the tracer of turns, or nil if tracing is disabled.
func (a *App) turnTracer() orchestrator.Tracer {
	if a.Tracer == nil && a.tracer != nil {
		return a.tracer
	}
	return a.Tracer
}
