// Package mcp provides ductor's tools to agents through the Model Context Protocol. With these tools, an agent can send
// messages and files to the chat, ask the user, schedule prompts, read sessions, and delegate work to other agents.
//
// An agent starts `ductor mcp`, which connects it to the socket of the running ductor; see package relay. A token
// identifies the conversation, the agent and the environment in which the agent runs. The agent can call tools only
// while it runs a turn in the conversation, in this environment, and a call has the rights of that turn.
//
// A user can also connect other MCP clients, such as an editor. These clients are called outside clients, because they
// call tools without a turn. Each of them has its own token (relay.CreateGrant), and acts for the owner, who is the
// user who set up the bot.
package mcp
