// Package terminal adds hooks to the settings of the agent CLIs that a user runs in terminals, and removes them
// again. Through the hooks, the CLIs report to ductor.
//
// The package does not run the hooks; see package hook.
package terminal
