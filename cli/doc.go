// Package cli holds what every agent is translated into (Request, Event, Result, Failure), and the two ports that the rest
// of ductor implements: Provider for a dialect, and Launcher for an environment in which processes start.
//
// It runs no turn and starts no process: see packages service, turn and host below it. It is no dialect either, and it knows
// nothing of Telegram, of chats or of SQLite.
package cli
