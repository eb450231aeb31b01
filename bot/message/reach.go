package message

import (
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// reachability stores which chats have accepted messages from the bot since the start of ductor.
type reachability struct {
	mu        sync.Mutex
	chats     map[int64]bool
	onReached func(in orchestrator.ConversationID) // may be nil
}

// WhenReached sets a callback for chats that accept messages again. It is called when a chat accepts a message for the
// first time since the start of ductor, and when a chat accepts a message after it has rejected others. The callback
// must not block. Call WhenReached before Run.
func (s *Messages) WhenReached(f func(in orchestrator.ConversationID)) { s.reachable.onReached = f }

// noteReachable records whether the chat accepts messages. err is the error of a request to the chat.
func (m *Message) noteReachable(err error) {
	in := m.To()
	kind := tgapi.FaultOf(err).Kind
	if (kind == tgapi.NoFault || kind == tgapi.ChatGone) &&
		m.all.reachable.becameReachable(in.Chat, kind == tgapi.NoFault) {
		m.all.reachable.onReached(in)
	}
}

// becameReachable stores whether the chat accepts messages. It returns true if the caller must call r.onReached: the
// chat accepts messages, but had rejected messages before, or is new in r.chats.
func (r *reachability) becameReachable(chat int64, accepts bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chats == nil {
		r.chats = make(map[int64]bool)
	}
	before := r.chats[chat]
	r.chats[chat] = accepts
	return accepts && !before && r.onReached != nil
}

// moveTo changes the chat of an unsent message after its group became a supergroup.
func (m *Message) moveTo(chat int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.Info("the group of a message became a supergroup; the message goes there", "new_chat", chat)
	m.row.Conversation.Chat, m.shown = chat, ""
}
