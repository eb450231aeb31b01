// Package handoff formats the history for an agent that joins a session or returns to it. It includes the turns of
// other agents completely if they fit a budget of tokens. Otherwise it includes the newest turns, and both ends of a
// turn that is too long.
//
// The package does NOT decide who joins a session, reads no store and calls no model.
package handoff
