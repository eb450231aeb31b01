package telegram

import "unicode/utf8"

// TopicID is the message_thread_id of a topic: the number of the message that made it.
type TopicID int64

// GeneralTopic is the topic every forum has. It must be left out of what is sent; typing may name it.
const GeneralTopic TopicID = 1

// Topic is a thread of a forum or of a private chat that has topics.
type Topic struct {
	ID     TopicID
	Name   string
	Closed bool
}

// Topic makes a topic and announces it, as a person does.
func (p *Person) Topic(c *Chat, name string) Topic {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.makeTopic(c, p, name)
}

func (s *Server) makeTopic(c *Chat, by *Person, name string) *Topic {
	if c.kind == Supergroup && c.lastID < 1 {
		c.lastID = 1 // number 1 belongs to General
	}
	id := c.peekID()
	t := &Topic{ID: TopicID(id), Name: name}
	c.topics[t.ID] = t
	made := map[string]any{"forum_topic_created": map[string]any{"name": name, "icon_color": 7322096}}
	m := message{Message: Message{Service: "topic " + name + " was made", Topic: t.ID}, author: by, extra: made}
	if by == nil {
		s.storeFromBot(c, m)
		return t
	}
	m.From = Sender{ID: by.id, Name: by.name}
	s.push("message", s.store(c, m).wire())
	return t
}

// peekID is the number the next message gets.
func (c *Chat) peekID() MessageID {
	if c.kind == Supergroup {
		return c.lastID + 1
	}
	return c.srv.lastID + 1
}

// CloseTopic closes a topic for everyone but administrators.
func (c *Chat) CloseTopic(id TopicID) { c.changeTopic(id, func(t *Topic) { t.Closed = true }) }

// DeleteTopic removes a topic with all its messages.
func (c *Chat) DeleteTopic(id TopicID) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.dropTopic(id)
}

func (c *Chat) dropTopic(id TopicID) {
	delete(c.topics, id)
	for _, m := range c.messages {
		if m.Topic == id {
			m.Deleted = true
		}
	}
	c.touch()
}

func (c *Chat) changeTopic(id TopicID, change func(*Topic)) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if t := c.topics[id]; t != nil {
		change(t)
		c.touch()
	}
}

// Topics are the topics of the chat by number.
func (c *Chat) Topics() map[TopicID]Topic {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	all := make(map[TopicID]Topic, len(c.topics))
	for id, t := range c.topics {
		all[id] = *t
	}
	return all
}

// topic finds a topic a message may go to. The caller holds mu.
func (c *Chat) topic(id TopicID) (*Topic, *Error) {
	t := c.topics[id]
	if !c.forum || t == nil {
		return nil, badRequest("message thread not found")
	}
	return t, nil
}

// sendTopic is the topic a message goes to. General must not be named: the original answers as for a missing one.
func (c *Chat) sendTopic(q *request) (TopicID, *Error) {
	id := TopicID(q.integer("message_thread_id"))
	if id == 0 {
		return 0, nil
	}
	t, err := c.topic(id)
	if err != nil {
		return 0, err
	}
	if t.Closed && c.bot != Administrator {
		return 0, badRequest("TOPIC_CLOSED")
	}
	return t.ID, nil
}

func (s *Server) createForumTopic(q *request) (any, *Error) {
	c, err := s.forumTarget(q)
	if err != nil {
		return nil, err
	}
	name := q.params["name"]
	if name == "" || utf8.RuneCountInString(name) > 128 {
		return nil, badRequest("TOPIC_TITLE_EMPTY")
	}
	t := s.makeTopic(c, nil, name)
	return map[string]any{"message_thread_id": t.ID, "name": t.Name, "icon_color": 7322096}, nil
}

// forumTarget is the chat of a call that manages topics.
func (s *Server) forumTarget(q *request) (*Chat, *Error) {
	c, err := s.target(q, "chat_id", writing)
	switch {
	case err != nil:
		return nil, err
	case !c.forum:
		return nil, badRequest("the chat is not a forum")
	case c.kind != PrivateChat && c.bot != Administrator:
		return nil, badRequest("not enough rights to create a topic")
	}
	return c, nil
}

// managed finds the topic a call changes.
func (s *Server) managed(q *request) (*Chat, *Topic, *Error) {
	c, err := s.forumTarget(q)
	if err != nil {
		return nil, nil, err
	}
	t := c.topics[TopicID(q.integer("message_thread_id"))]
	if t == nil {
		return nil, nil, badRequest("TOPIC_ID_INVALID")
	}
	return c, t, nil
}

func (s *Server) editForumTopic(q *request) (any, *Error) {
	c, t, err := s.managed(q)
	if err != nil {
		return nil, err
	}
	name, given := q.params["name"]
	if !given || name == t.Name {
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	t.Name = name
	s.noteTopic(c, t, "topic is now called "+name, "forum_topic_edited", map[string]any{"name": name})
	return true, nil
}

func (s *Server) closeForumTopic(q *request) (any, *Error) {
	c, t, err := s.managed(q)
	if err != nil {
		return nil, err
	}
	if t.Closed {
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	t.Closed = true
	s.noteTopic(c, t, "topic was closed", "forum_topic_closed", map[string]any{})
	return true, nil
}

func (s *Server) reopenForumTopic(q *request) (any, *Error) {
	c, t, err := s.managed(q)
	if err != nil {
		return nil, err
	}
	if !t.Closed {
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	t.Closed = false
	s.noteTopic(c, t, "topic was opened again", "forum_topic_reopened", map[string]any{})
	return true, nil
}

func (s *Server) deleteForumTopic(q *request) (any, *Error) {
	c, t, err := s.managed(q)
	if err != nil {
		return nil, err
	}
	c.dropTopic(t.ID)
	return true, nil
}

func (s *Server) noteTopic(c *Chat, t *Topic, what, field string, value any) {
	s.storeFromBot(c, message{
		Message: Message{Service: what, Topic: t.ID},
		extra:   map[string]any{field: value},
	})
}
