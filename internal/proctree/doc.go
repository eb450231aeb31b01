// Package proctree finds and ends all processes that a program started: by parent, session and process group, by
// control group, and by an entry in the environment that descendants inherit. If a process leaves its session and
// process group and removes that entry, it is still found through its control group, or through its parent if an
// ancestor is a child subreaper (PR_SET_CHILD_SUBREAPER).
//
// The package starts no processes, knows nothing of agents or runs, and imports no other package of ductor. It needs
// Linux and no cgo.
package proctree
