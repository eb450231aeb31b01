package orchestrator

// SessionScope describes which sessions the agent of a turn can read.
type SessionScope struct {
	Conversation ConversationID // all sessions of this conversation
	Chats        []int64        // all sessions of these chats
	// Shared lists chats of which the agent can read some sessions: those whose directory is one of Dirs or below.
	// Directories in Except, and everything below them, are excluded.
	Shared       []int64
	Dirs, Except []string
}
