// Package service is the one gateway to all agents: it picks the agent, keeps its session between turns, limits how many
// processes there are, and recovers where that is safe.
//
// It knows no dialect: those come as cli.Providers. It knows nothing of chats, of queues or of SQLite, and starts no process.
package service
