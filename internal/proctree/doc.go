// Package proctree finds and ends all processes that a program started. It finds them in several ways: by parent,
// session and process group, by control group, and by an environment variable that descendants inherit. A process can
// leave its session and process group, and remove the variable. The package then still finds the process through its
// control group. Without a control group, it finds the process through its parent, if an ancestor is a child subreaper
// (PR_SET_CHILD_SUBREAPER).
//
// The package starts no processes and imports no other package of ductor. It requires Linux but not cgo.
package proctree
