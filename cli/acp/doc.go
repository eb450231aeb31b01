// Package acp lets ductor use any agent that speaks the Agent Client Protocol (ACP), version 1
// (https://agentclientprotocol.com). The protocol is JSON-RPC 2.0, one message per line, over standard input and output
// of the agent's process.
//
// Options configures an agent, and Quirks describes how it deviates from the protocol. The catalogue is a built-in list
// of agents that speak the protocol.
//
// One process of an agent serves many conversations of ductor. Each conversation has its own session in that process.
package acp
