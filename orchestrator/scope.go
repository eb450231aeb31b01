package orchestrator

// SessionScope describes which sessions the agent of a turn can read.
type SessionScope struct {
	Conversation ConversationID // the agent can read all sessions of this conversation
	Chats        []int64        // the agent can read all sessions of these chats
	// Shared lists other chats. The agent can read a session of these chats if the session's directory is one of Dirs
	// or below, but not if it is one of Except or below.
	Shared       []int64
	Dirs, Except []string
}
