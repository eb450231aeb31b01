// Package handoff gives an agent the entries of a session that it has not seen. Knowledge selects the entries and
// records which ones the agent has seen. Write formats the entries within a limit of tokens. If they are too long, it
// includes the newest ones, and leaves out the middle of an entry that is too long itself.
//
// The package does NOT decide which agents run in a session.
package handoff
