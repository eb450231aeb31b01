package message

import (
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// reachability records for each chat whether Telegram accepts messages there, according to the calls since the start.
type reachability struct {
	mu        sync.Mutex
	chats     map[int64]bool
	onReached func(in orchestrator.ConversationID) // may be nil
}

// WhenReached sets a callback for when a chat accepts messages: at the first message after the start, and again after
// Telegram had rejected everything for the chat. f must not block. Call WhenReached before Run.
func (s *Messages) WhenReached(f func(in orchestrator.ConversationID)) { s.reachable.onReached = f }

// noteReachable records what the result of a call shows about its chat.
func (m *Message) noteReachable(err error) {
	in := m.To()
	kind := tgapi.FaultOf(err).Kind
	if (kind == tgapi.NoFault || kind == tgapi.ChatGone) &&
		m.all.reachable.becameReachable(in.Chat, kind == tgapi.NoFault) {
		m.all.reachable.onReached(in)
	}
}

// becameReachable records whether a chat accepts messages. It reports whether the chat does so for the first time, or
// again after rejecting them.
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

// moveTo moves an unsent message to the supergroup that replaced its group.
func (m *Message) moveTo(chat int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.Info("the group of a message became a supergroup; the message goes there", "new_chat", chat)
	m.row.Conversation.Chat, m.shown = chat, ""
}
