// Package bot connects ductor to Telegram: updates in, messages out.
//
// Inbound: package bot/updates receives updates and passes them to the handlers that this package assembles. The
// handlers use the domain through Desk.
//
// Outbound: all messages pass through one outbox, which manages Telegram's budgets. Cards grow by edits. Notices are
// durable.
//
// Queues, turns, sessions and models are not part of this package: they belong to package orchestrator, behind Desk.
// Package bot/render converts Markdown to entities. The bot stores all data in orchestrator.Journal, except the files
// that users send, which it stores on disk.
package bot
