// Package hook is what the agent CLIs of a user's terminals run: it hands what they say to the ductor that runs, and gives them
// its answer. It is both ends of that connection.
//
// The package does NOT decide anything. Where no ductor answers, it says nothing, and the CLI asks at its terminal as usual. It
// imports nothing of ductor, so that a hook starts at once.
package hook
