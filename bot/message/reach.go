package message

import (
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// reached knows the chats that Telegram lets the bot write to, as far as calls showed it since the start.
type reached struct {
	mu    sync.Mutex
	chats map[int64]bool
	again func(in orchestrator.ConversationID) // nil for none
}

// WhenReached has f called at the first message that arrives in a chat: after the start, and after Telegram refused all that was for
// the chat. f must not block. Call it before Run.
func (s *Messages) WhenReached(f func(in orchestrator.ConversationID)) { s.reached.again = f }

// reach takes what a call showed about the chat of the message.
func (m *Message) reach(err error) {
	in := m.To()
	kind := tgapi.FaultOf(err).Kind
	if (kind == tgapi.NoFault || kind == tgapi.ChatGone) && m.all.reached.changes(in.Chat, kind == tgapi.NoFault) {
		m.all.reached.again(in)
	}
}

// changes records whether a chat can be reached. It reports whether it is reached for the first time or again.
func (r *reached) changes(chat int64, now bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chats == nil {
		r.chats = make(map[int64]bool)
	}
	before := r.chats[chat]
	r.chats[chat] = now
	return now && !before && r.again != nil
}

// moveTo has the message belong to the supergroup that its group became, where nothing shows it yet.
func (m *Message) moveTo(chat int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.Info("the group of a message became a supergroup; the message goes there", "new_chat", chat)
	m.row.Conversation.Chat, m.shown = chat, ""
}
