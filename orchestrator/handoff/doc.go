// Package handoff tells agents the entries of a session that they missed. Knowledge selects the entries, and records
// which entries the agent knows. Write formats the entries: all of them if they fit a budget of tokens, otherwise the
// newest ones. Of an entry that is too long, it includes both ends.
//
// The package does NOT decide which agents join a session.
package handoff
