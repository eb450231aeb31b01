// Package handoff shows an agent the entries of a session that it has not seen. Knowledge selects the entries, and
// records which entries the agent knows. Write formats the entries: all of them if they fit a budget of tokens,
// otherwise the newest ones. It omits the middle of an entry that is too long.
//
// The package does NOT decide which agents join a session.
package handoff
