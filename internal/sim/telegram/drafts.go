package telegram

import (
	"slices"
	"time"
)

// DraftLife is how long a chat shows a draft that is not sent again.
const DraftLife = 30 * time.Second

// Draft is a preview of an answer that is still being written.
type Draft struct {
	ID       int64
	Topic    TopicID
	Text     string
	Entities []Entity
	At       time.Time
	CanStop  bool
}

func (s *Server) sendMessageDraft(q *request) (any, *Error) {
	text, err := q.formattedParam("text", "entities")
	if err != nil {
		return nil, err
	}
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	id := q.integer("draft_id")
	switch {
	case c.kind != PrivateChat:
		return nil, badRequest("TEXTDRAFT_PEER_INVALID")
	case id == 0:
		return nil, badRequest("TEXTDRAFT_ID_INVALID")
	case Units(text.text) > MaxText:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	topic, err := c.sendTopic(q)
	if err != nil {
		return nil, err
	}
	c.drafts = slices.DeleteFunc(slices.Clone(c.drafts), func(d Draft) bool { return d.ID == id })
	c.drafts = append(c.drafts, Draft{id, topic, text.text, text.entities, s.now(), q.boolean("can_stop")})
	c.touch()
	return true, nil
}

// StopDraft presses the Stop button of a draft; the bot gets a stopped_message_generation update if it asked for it.
func (p *Person) StopDraft(c *Chat, id int64) {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := map[string]any{"chat": c.wire(), "draft_id": id}
	for _, d := range c.drafts {
		if d.ID == id && d.Topic != 0 {
			stopped["message_thread_id"] = d.Topic
		}
	}
	s.push("stopped_message_generation", stopped)
}

// endDrafts takes the drafts of a topic away, as the message they became does.
func (c *Chat) endDrafts(topic TopicID) {
	c.drafts = slices.DeleteFunc(slices.Clone(c.drafts), func(d Draft) bool { return d.Topic == topic })
}

// liveDrafts are the drafts still shown.
func (c *Chat) liveDrafts() []Draft {
	now := c.srv.now()
	return slices.DeleteFunc(slices.Clone(c.drafts), func(d Draft) bool { return now.Sub(d.At) >= DraftLife })
}
