// Package cli defines the common form of all agents (Request, Event, Result, Failure), and the two ports that the rest
// of ductor implements: Provider for a dialect, and Launcher for an environment in which processes start.
//
// It runs no turn and starts no process: packages service, turn and host below it do. It contains no dialect, and it
// knows nothing of Telegram, chats or SQLite.
package cli
