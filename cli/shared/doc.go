// Package shared runs many sessions of an agent in one process.
//
// A Pool contains the processes of one provider. A session joins a process that fits its request, or a new process, and
// leaves it later. When the last session leaves, the process is ended or detached. A Process counts its sessions and
// turns. After a restart of ductor, the turns of a Process can be resumed.
//
// A Session runs the turns of one conversation in such a process. It tracks the phases of the session and of the
// prompt, and resumes a turn after a restart. If its process accepts no more turns, the Session opens again in another
// process.
//
// The provider defines the messages to the agent, and assigns the agent's messages to sessions. It implements three
// interfaces: Server for a process, AgentSession for a session, and AgentTurn for a turn.
package shared
