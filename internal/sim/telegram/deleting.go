package telegram

import (
	"encoding/json"
	"slices"
	"time"
)

// deleteAge is the maximum age of a message that a bot can delete.
const deleteAge = 48 * time.Hour

func (s *Server) deleteMessage(q *request) (any, *Error) {
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	id := q.messageID("message_id")
	if id <= 0 {
		return nil, badRequest("message identifier is not specified")
	}
	m := c.find(id)
	if m == nil {
		return nil, badRequest("message to delete not found")
	}
	if !m.deletable(s.now()) {
		return nil, badRequest("message can't be deleted for everyone")
	}
	m.Deleted = true
	c.touch()
	return true, nil
}

// deletable reports whether the bot can delete a message. It can delete its own messages. In private chats and as an
// administrator, it can delete all messages. A message must not be older than two days.
func (m *message) deletable(now time.Time) bool {
	if now.Sub(m.Date) > deleteAge {
		return false
	}
	return m.From.Bot || m.chat.kind == PrivateChat || m.chat.bot == Administrator
}

// deleteMessages ignores messages that do not exist or that the bot cannot delete, like the real server.
func (s *Server) deleteMessages(q *request) (any, *Error) {
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	var ids []MessageID
	if json.Unmarshal([]byte(q.params["message_ids"]), &ids) != nil {
		return nil, badRequest("can't parse message identifiers JSON object")
	}
	switch {
	case len(ids) == 0:
		return nil, badRequest("message identifiers are not specified")
	case len(ids) > 100:
		return nil, badRequest("too many message identifiers specified")
	}
	for _, id := range ids {
		if m := c.find(id); m != nil && m.deletable(s.now()) {
			m.Deleted = true
		}
	}
	c.touch()
	return true, nil
}

func (s *Server) pinChatMessage(q *request) (any, *Error) {
	m, err := s.pinTarget(q)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, badRequest("message to pin not found")
	}
	if m.Pinned {
		return nil, badRequest("CHAT_NOT_MODIFIED")
	}
	m.Pinned = true
	note := s.service(m.chat, nil, "pinned a message", map[string]any{"pinned_message": m})
	s.push("message", note.wire()) // the real server also reports the bot's own pins to the bot
	return true, nil
}

func (s *Server) unpinChatMessage(q *request) (any, *Error) {
	m, err := s.pinTarget(q)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, badRequest("message to unpin not found")
	}
	m.Pinned = false
	m.chat.touch()
	return true, nil
}

// pinTarget returns the message that a call names. If the call names no message, pinTarget returns the message that was
// pinned most recently.
func (s *Server) pinTarget(q *request) (*message, *Error) {
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	if c.kind != PrivateChat && c.bot != Administrator {
		return nil, badRequest("not enough rights to manage pinned messages in the chat")
	}
	if q.params["message_id"] != "" {
		return c.find(q.messageID("message_id")), nil
	}
	return c.pinned(), nil
}

func (c *Chat) pinned() *message {
	for _, m := range slices.Backward(c.messages) {
		if m.Pinned && !m.Deleted {
			return m
		}
	}
	return nil
}

func (c *Chat) lastPinned() *wireMessage {
	if m := c.pinned(); m != nil {
		return m.wireAlone()
	}
	return nil
}
