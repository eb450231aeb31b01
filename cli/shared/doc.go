// Package shared runs one agent process for many sessions. A Pool has the processes of one dialect. A session joins the
// process that fits its request, or a new one, and later leaves it. The last session that leaves ends the process or
// detaches from it. A Process counts its sessions and turns, and can be resumed after a restart.
//
// The dialect defines the messages to the agent, and assigns the agent's messages to sessions.
package shared
