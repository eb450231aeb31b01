// Package acp implements the Agent Client Protocol, version 1 (https://agentclientprotocol.com): JSON-RPC 2.0, one
// message per line, over standard input and output of an agent's process. It serves all agents that speak the protocol.
// Options describe the peculiarities of an agent.
//
// One process serves many conversations. A session of this package is a session of the agent in that process.
//
// The package defines no agent and no vendor's log-in. It stores nothing that outlives its processes.
package acp
