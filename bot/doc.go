// Package bot is Telegram and nothing else: updates in, messages out.
//
// Inbound: poller (durable long poll) -> router (allowlist, kinds of update) -> lanes (order per
// conversation) -> merge (albums, split pastes) and files -> the Desk, which is the domain. Outbound:
// everything passes one outbox, which owns Telegram's budgets; cards grow by edits; letters are durable.
//
// It is not the domain: queues, turns, sessions and models live in package orchestrator, behind Desk. It is
// not a renderer: Markdown becomes entities in package bot/render. It keeps nothing on disk by itself but
// the files people send; the rest goes through orchestrator.Journal.
package bot
