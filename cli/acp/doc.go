// Package acp implements the Agent Client Protocol, version 1 (https://agentclientprotocol.com): JSON-RPC 2.0, one
// message per line, over standard input and output of an agent's process. It implements the protocol for all agents
// that use it; the creator of a Provider describes an agent's peculiarities in Options.
//
// One process serves many conversations; a session of this package is a session of the agent in it.
//
// The package is not an agent with a name of its own, knows no vendor's log-in, and stores nothing beyond its
// processes.
package acp
