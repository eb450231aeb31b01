// Package proctree finds and ends everything that a process started: by parent, session and group, by control group, and by
// an entry in the environment that descendants inherit. A process that leaves all of these at once is found by its control
// group, or by its parent where an ancestor is a child subreaper (PR_SET_CHILD_SUBREAPER).
//
// It starts nothing, knows nothing of agents or runs, and imports nothing of ours. It needs Linux and no cgo.
package proctree
