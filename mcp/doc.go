// Package mcp serves ductor's tools to the agents of conversations through the Model Context Protocol. With them agents
// send messages and files, ask the user, schedule prompts, read sessions and delegate work to other agents.
//
// An agent starts `ductor mcp`, which connects it to the socket of the running ductor (package relay). A token
// identifies the conversation and the agent. A call is valid only while that agent runs a turn there, and has that
// turn's rights. A client outside of turns has a token of its own (relay.CreateGrant) and acts for the owner.
package mcp
