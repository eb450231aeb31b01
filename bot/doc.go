// Package bot connects ductor to Telegram: updates in, messages out.
//
// Inbound: package bot/updates receives updates and passes them to the handlers that this package assembles. The
// handlers use the domain through Desk.
//
// Outbound: all messages pass through one outbox, which manages Telegram's budgets. Cards grow by edits. Notices are
// durable.
//
// The package is not the domain: queues, turns, sessions and models are in package orchestrator, behind Desk. It is not
// a renderer: package bot/render converts Markdown to entities. The only files that it stores on disk are those that
// users send. All other data goes through orchestrator.Journal.
package bot
