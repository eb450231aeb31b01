// Package mcp serves tools of ductor to the agents of conversations, by the Model Context Protocol: they send messages and files,
// ask the user, schedule prompts, look into sessions and have other agents help.
//
// An agent starts `ductor mcp`, which package relay makes a way to the socket of the running ductor. A token names the conversation
// and the agent. A call counts only while that agent runs a turn there, and has the rights of that turn.
package mcp
