// Package bot connects ductor to Telegram: updates in, messages out.
//
// Inbound, package bot/updates receives updates and passes them to the handlers that this package assembles. The
// handlers use the domain through Desk. Outbound, everything passes one outbox, which owns Telegram's budgets; cards
// grow by edits; notices are durable.
//
// The package is not the domain: queues, turns, sessions and models are in package orchestrator, behind Desk. It is not
// a renderer: package bot/render converts Markdown to entities. It stores nothing on disk but the files that users
// send; everything else goes through orchestrator.Journal.
package bot
