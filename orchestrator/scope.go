package orchestrator

// SessionScope is the set of sessions that the agent of a turn can read.
type SessionScope struct {
	Conversation ConversationID // all of its sessions
	Chats        []int64        // all sessions of these chats too
	// Shared lists chats that belong to the scope only in part: only their sessions in Dirs and below belong to it,
	// without those in Except and below.
	Shared       []int64
	Dirs, Except []string
}
