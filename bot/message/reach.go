package message

import (
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// reachability tracks which chats Telegram lets the bot write to, as far as calls since the start have shown.
type reachability struct {
	mu        sync.Mutex
	chats     map[int64]bool
	onReached func(in orchestrator.ConversationID) // may be nil
}

// WhenReached sets a callback for the first message that arrives in a chat: after the start, and after Telegram had
// rejected everything for the chat. f must not block. Call WhenReached before Run.
func (s *Messages) WhenReached(f func(in orchestrator.ConversationID)) { s.reachable.onReached = f }

// noteReachable records the result of a call as evidence about the chat.
func (m *Message) noteReachable(err error) {
	in := m.To()
	kind := tgapi.FaultOf(err).Kind
	if (kind == tgapi.NoFault || kind == tgapi.ChatGone) &&
		m.all.reachable.becameReachable(in.Chat, kind == tgapi.NoFault) {
		m.all.reachable.onReached(in)
	}
}

// becameReachable records whether a chat can be reached. It reports whether it is reached for the first time, or again after it
// could not be.
func (r *reachability) becameReachable(chat int64, now bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chats == nil {
		r.chats = make(map[int64]bool)
	}
	before := r.chats[chat]
	r.chats[chat] = now
	return now && !before && r.onReached != nil
}

// moveTo moves a message that is not shown yet to the supergroup that its group became.
func (m *Message) moveTo(chat int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.Info("the group of a message became a supergroup; the message goes there", "new_chat", chat)
	m.row.Conversation.Chat, m.shown = chat, ""
}
