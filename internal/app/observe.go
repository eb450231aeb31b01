package app

import (
	"context"

	"ductor/bot/outbox"
	"ductor/cli"
	"ductor/orchestrator"
)

// Watch gets every event of every turn, in the turn's goroutine: it must not block.
type Watch func(req cli.Request, ev cli.Event)

// watched is a gateway of which the Watch gets the events, if there is one.
func (a *App) watched(g orchestrator.Gateway) orchestrator.Gateway {
	if a.Watch == nil {
		return g
	}
	return watchedGateway{g, a.Watch}
}

// watchedGateway tells of the events of turns.
type watchedGateway struct {
	orchestrator.Gateway
	watch Watch
}

func (g watchedGateway) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	return g.Gateway.Run(ctx, agent, req, g.tee(req, emit))
}

func (g watchedGateway) Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	return g.Gateway.Resume(ctx, agent, req, g.tee(req, emit))
}

func (g watchedGateway) tee(req cli.Request, emit func(cli.Event)) func(cli.Event) {
	return func(ev cli.Event) {
		g.watch(req, ev)
		emit(ev)
	}
}

// Live says which agents run, and measures them.
func (a *App) Live(ctx context.Context) cli.Living { return a.service.Live(ctx) }

// Budgets lists what may be sent to chats now.
func (a *App) Budgets() []outbox.Budget { return a.bot.Budgets() }
