package orchestrator

// SessionScope describes which sessions the agent of a turn can read.
type SessionScope struct {
	Conversation ConversationID // all sessions of this conversation
	Chats        []int64        // all sessions of these chats
	// Shared lists more chats. Of their sessions, the agent can read those whose directory is in Dirs or below a
	// directory in Dirs. Except excludes directories and everything below them.
	Shared       []int64
	Dirs, Except []string
}
