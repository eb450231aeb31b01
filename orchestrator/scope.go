package orchestrator

// SessionScope is the set of sessions that the agent of a turn can read.
type SessionScope struct {
	Conversation ConversationID // all sessions of this conversation
	Chats        []int64        // all sessions of these chats, too
	// In the chats Shared, the scope contains only the sessions in Dirs and below, but not in Except and below.
	Shared       []int64
	Dirs, Except []string
}
