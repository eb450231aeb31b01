// Package shared runs one agent process for many sessions. A Pool has the processes of one dialect. A session joins the
// process that fits its request, or a new one, and later leaves it. The last session that leaves ends the process or
// detaches from it. A Process counts its sessions and turns, and can be resumed after a restart.
//
// A Session runs the turns of one conversation in such a process: it owns the phases of the session and of its prompt,
// adopts a turn after a restart, and opens the session in another process if its own takes no more turns.
//
// The dialect defines the messages to the agent, and assigns the agent's messages to sessions. A Server is its part of
// a process, an AgentSession its part of a session, and an AgentTurn its part of a turn.
package shared
