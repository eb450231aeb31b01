// Package shared runs one agent process for many sessions.
//
// A Pool contains the processes of one dialect. A session joins a process that fits its request, or a new process, and
// leaves it later. When the last session leaves, the process is ended or detached. A Process counts its sessions and
// turns, and can be resumed after a restart.
//
// A Session runs the turns of one conversation in such a process. It manages the phases of the session and of the
// prompt, and adopts a turn after a restart. If its process accepts no more turns, the Session opens again in another
// process.
//
// The dialect defines the messages to the agent, and assigns the agent's messages to sessions. A Server is the
// dialect's part of a process, an AgentSession its part of a session, and an AgentTurn its part of a turn.
package shared
