package orchestrator

// SessionScope is the set of sessions that the agent of a turn can read.
type SessionScope struct {
	Conversation ConversationID // all of its sessions
	Chats        []int64        // all sessions of these chats too
	// Shared are chats of which only the sessions in Dirs and below belong to the scope, and not those in Except and
	// below.
	Shared       []int64
	Dirs, Except []string
}
