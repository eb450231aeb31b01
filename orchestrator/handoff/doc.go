// Package handoff adds history to a prompt: the entries of a session that the agent has not seen. Knowledge selects
// these entries, and records which entries the agent has seen. Write formats the entries. If they exceed a limit of
// tokens, Write uses only the newest entries, and may shorten one that does not fit.
//
// The package does NOT decide which agents run in a session.
package handoff
