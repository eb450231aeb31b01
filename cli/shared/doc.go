// Package shared runs one agent process for many sessions. A Pool has the processes of one dialect: a session joins the one
// that fits its request, or a new one, and leaves it; the last session that leaves ends the process or detaches from it.
// A Process counts its sessions and turns, and can be resumed after a restart.
//
// What is said to the agent, and which of its messages concern which session, is the dialect's.
package shared
