// Package proctree finds and ends all processes that a program started. It finds them in several ways: by parent,
// session and process group, by control group, and by an environment variable that descendants inherit. If a process
// leaves its session and process group and removes the variable, the package still finds it through its control group.
// Without a control group, the package finds such a process through its parent, if an ancestor is a child subreaper
// (PR_SET_CHILD_SUBREAPER).
//
// The package starts no processes and imports no other package of ductor. It requires Linux but not cgo.
package proctree
