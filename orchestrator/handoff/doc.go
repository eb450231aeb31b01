// Package handoff adds history to a prompt: the entries of a session that the agent has not seen. Knowledge selects
// these entries, and records which ones the agent has seen. Write formats them. If they exceed a limit of tokens, Write
// uses only the newest entries, and shortens an entry that is too long itself.
//
// The package does NOT decide which agents run in a session.
package handoff
