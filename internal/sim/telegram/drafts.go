package telegram

import (
	"slices"
	"time"
)

// DraftLife is how long a chat shows a draft after the bot has last updated the draft.
const DraftLife = 30 * time.Second

// Draft is a preview of a message that the bot is still writing.
type Draft struct {
	ID       int64
	Topic    TopicID
	Text     string
	Entities []Entity
	At       time.Time
	CanStop  bool
	Keep     bool // the draft stays visible when a user stops it
	Stopped  bool // a user has stopped the draft; the server ignores further text
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
	if old := c.draft(id, topic); old != nil && old.Stopped {
		return true, nil
	}
	// A topic shows only its newest draft.
	c.drafts = slices.DeleteFunc(slices.Clone(c.drafts), func(d Draft) bool { return d.Topic == topic })
	c.drafts = append(c.drafts, Draft{
		ID: id, Topic: topic, Text: text.text, Entities: text.entities, At: s.now(), CanStop: q.boolean("can_stop"),
		Keep: q.boolean("keep_on_stop"),
	})
	c.touch()
	return true, nil
}

func (c *Chat) draft(id int64, topic TopicID) *Draft {
	for _, d := range c.liveDrafts() {
		if d.ID == id && d.Topic == topic {
			return &d
		}
	}
	return nil
}

// StopDraft presses the Stop button of a draft. It returns false if the chat shows no such draft, or if the draft has
// no Stop button. The bot gets a stopped_message_generation update if it has subscribed to these updates.
func (p *Person) StopDraft(c *Chat, id int64) bool {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(c.drafts, func(d Draft) bool {
		return d.ID == id && d.CanStop && !d.Stopped && d.lives(s.now())
	})
	if i < 0 {
		return false
	}
	c.drafts = slices.Clone(c.drafts)
	d := &c.drafts[i]
	d.Stopped = true
	stopped := map[string]any{"chat": c.wire(), "draft_id": id}
	if d.Topic != 0 {
		stopped["message_thread_id"] = d.Topic
	}
	c.touch()
	s.push("stopped_message_generation", stopped)
	return true
}

// endDrafts removes the drafts of a topic when the bot sends a message there.
func (c *Chat) endDrafts(topic TopicID) {
	c.drafts = slices.DeleteFunc(slices.Clone(c.drafts), func(d Draft) bool { return d.Topic == topic })
}

func (d Draft) lives(now time.Time) bool { return now.Sub(d.At) < DraftLife }

// liveDrafts returns the drafts that have not expired. It includes stopped drafts.
func (c *Chat) liveDrafts() []Draft {
	now := c.srv.now()
	return slices.DeleteFunc(slices.Clone(c.drafts), func(d Draft) bool { return !d.lives(now) })
}

func (c *Chat) shownDrafts() []Draft {
	return slices.DeleteFunc(c.liveDrafts(), func(d Draft) bool { return d.Stopped && !d.Keep })
}
