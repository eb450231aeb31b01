// Package acp implements the Agent Client Protocol, version 1 (https://agentclientprotocol.com): JSON-RPC 2.0, one
// message per line, over standard input and output of an agent's process. It implements the protocol for all agents
// that use it. The creator of a Provider describes the peculiarities of an agent in Options.
//
// One process serves many conversations. A session of this package is a session of the agent in that process.
//
// The package defines no agent of its own. It does not know how to log in to any vendor, and stores nothing that
// outlives its processes.
package acp
