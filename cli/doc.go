// Package cli defines the common form of all agents (Request, Event, Result, Failure), and the two ports that the rest
// of ductor implements: Provider for a dialect, and Launcher for an environment in which processes start.
//
// Package cli itself runs no turns and starts no processes; packages cli/service, cli/turn and cli/host do. It contains
// no dialect, and knows nothing of Telegram, chats or SQLite.
package cli
