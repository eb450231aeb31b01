// Package bot is the Telegram side of ductor: it handles the messages of users, and shows them the work of agents.
//
// Package bot/updates receives messages and button presses, and passes them to the handlers in this package. The
// handlers call the orchestrator through the interface Desk.
//
// In the other direction, the orchestrator calls Chat. Chat shows running turns as cards: messages that grow by edits.
// It stores notices in the database until they are sent. All requests to Telegram pass through one outbox, which
// observes Telegram's rate limits.
//
// Queues, turns, sessions and models belong to package orchestrator. Package bot/render converts Markdown to Telegram's
// formatting. The bot stores all data in orchestrator.Journal, except the files that users send, which are on disk.
package bot
