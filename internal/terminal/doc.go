// Package terminal adds hooks to the settings of agent CLIs, and removes them again. These are the CLIs that a user
// runs in terminals. A CLI runs a hook, which is a program, when an event happens. The hooks of this package report the
// events to ductor.
//
// The package does not run the hooks; see package hook.
package terminal
