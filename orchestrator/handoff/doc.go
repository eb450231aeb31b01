// Package handoff writes the history that an agent gets when it joins a session or returns to it: the turns of other agents,
// whole if they fit a budget of tokens, otherwise the newest of them, with both ends of a turn that is too long.
//
// The package does NOT decide who joins a session, reads no store and calls no model.
package handoff
