// Package terminal adds hooks to the settings of the agent CLIs that a user runs in terminals, and removes them again.
// A hook is a program that a CLI runs when an event happens. The hooks of this package report the events to ductor.
//
// The package does not run the hooks; see package hook.
package terminal
