// Package cli runs one turn of a coding agent, whichever agent it is.
//
// It owns the words every agent dialect is translated into (Request, Event, Result, Failure), the two
// seams the rest of the house plugs into (Provider for a dialect, Launcher for the place processes
// start), and the one gateway the domain calls (Service).
//
// It is not a dialect: argv, wire formats and log-in files of Claude, Codex and the others live in the
// packages below it. It knows nothing of Telegram, of chats, or of SQLite.
package cli
