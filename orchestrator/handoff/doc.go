// Package handoff tells agents the entries of a session that they missed. Knowledge decides which ones, and records the
// agent's knowledge. Write formats them: completely if they fit a budget of tokens, otherwise the newest ones, and both
// ends of an entry that is too long.
//
// The package does NOT decide who joins a session.
package handoff
