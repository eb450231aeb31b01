// Package acp speaks the Agent Client Protocol, version 1 (https://agentclientprotocol.com): JSON-RPC 2.0 by
// lines over the standard input and output of an agent's process. It is the protocol once, for every agent
// that speaks it; what is particular about an agent is said in Options by whoever makes a Provider.
//
// One process serves many conversations; a session of this package is one of the agent's sessions in it.
//
// It is not a dialect with a name of its own, knows no vendor's log-in, and keeps nothing beyond its processes.
package acp
