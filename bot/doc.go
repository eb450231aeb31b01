// Package bot is Telegram and nothing else: updates in, messages out.
//
// Package bot/updates takes what comes in and hands it to the handlers that this package assembles; what they store and
// start is behind Desk, which is the domain. Outbound: everything passes one outbox, which owns Telegram's budgets; cards
// grow by edits; notices are durable.
//
// It is not the domain: queues, turns, sessions and models live in package orchestrator, behind Desk. It is
// not a renderer: Markdown becomes entities in package bot/render. It keeps nothing on disk but
// the files that users send; the rest goes through orchestrator.Journal.
package bot
