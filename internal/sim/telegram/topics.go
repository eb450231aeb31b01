package telegram

import (
	"maps"
	"slices"
	"strings"
)

// TopicID is the message_thread_id of a topic. It equals the ID of the first message in the topic.
type TopicID int64

// GeneralTopic is the topic General, which every forum has. Calls that send messages must not contain its ID. Calls
// that show typing may contain it.
const GeneralTopic TopicID = 1

// Topic is a topic of a forum, or of a private chat in which topics are enabled.
type Topic struct {
	ID     TopicID
	Name   string
	Icon   string // ID of a custom emoji, or ""
	Closed bool
	byBot  bool // the bot created the topic, and may change it without further rights
}

// Topic makes the user create a topic. A service message announces it.
func (p *Person) Topic(c *Chat, name string) Topic {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.makeTopic(c, p, name)
}

func (s *Server) makeTopic(c *Chat, by *Person, name string) *Topic {
	if c.kind == Supergroup && c.lastID < 1 {
		c.lastID = 1 // the topic General has ID 1
	}
	id := c.peekID()
	t := &Topic{ID: TopicID(id), Name: name, byBot: by == nil}
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

// peekID returns the ID that the next message will have.
func (c *Chat) peekID() MessageID {
	if c.kind == Supergroup {
		return c.lastID + 1
	}
	return c.srv.lastID + 1
}

// CloseTopic closes a topic, so that only administrators can write in it.
func (c *Chat) CloseTopic(id TopicID) { c.changeTopic(id, func(t *Topic) { t.Closed = true }) }

// ReopenTopic opens a closed topic again.
func (c *Chat) ReopenTopic(id TopicID) { c.changeTopic(id, func(t *Topic) { t.Closed = false }) }

// DeleteTopic deletes a topic and all its messages.
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

// Topics returns the topics of the chat. The key is the ID.
func (c *Chat) Topics() map[TopicID]Topic {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	all := make(map[TopicID]Topic, len(c.topics))
	for id, t := range c.topics {
		all[id] = *t
	}
	return all
}

// topic returns the topic in which a new message is sent. The caller holds mu.
func (c *Chat) topic(id TopicID) (*Topic, *Error) {
	t := c.topics[id]
	if !c.forum || t == nil {
		return nil, badRequest("message thread not found")
	}
	return t, nil
}

// sendTopic returns the topic in which a call sends a message. If the call contains the ID of General, sendTopic
// returns the same error as the real server, which does not find this topic.
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

// topicNameLimit is the maximum length of a topic's name in characters. Telegram cuts a longer name.
const topicNameLimit = 128

func topicName(q *request) (string, *Error) {
	name := []rune(strings.TrimSpace(q.params["name"]))
	if len(name) == 0 {
		return "", badRequest("title must be non-empty")
	}
	return string(name[:min(len(name), topicNameLimit)]), nil
}

// topicIcon returns the icon of a topic from a call, or "".
func topicIcon(q *request) (string, *Error) {
	id := q.params["icon_custom_emoji_id"]
	if _, known := topicIcons()[id]; id != "" && !known {
		return "", badRequest("DOCUMENT_INVALID")
	}
	return id, nil
}

func (s *Server) createForumTopic(q *request) (any, *Error) {
	c, err := s.forumTarget(q)
	if err != nil {
		return nil, err
	}
	if !c.managesTopics() {
		return nil, badRequest("not enough rights to create a topic")
	}
	name, err := topicName(q)
	if err != nil {
		return nil, err
	}
	icon, err := topicIcon(q)
	if err != nil {
		return nil, err
	}
	t := s.makeTopic(c, nil, name)
	t.Icon = icon
	made := map[string]any{"message_thread_id": t.ID, "name": t.Name, "icon_color": 7322096}
	if icon != "" {
		made["icon_custom_emoji_id"] = icon
	}
	return made, nil
}

// forumTarget returns the chat in which a call manages topics.
func (s *Server) forumTarget(q *request) (*Chat, *Error) {
	c, err := s.target(q, "chat_id", writing)
	switch {
	case err != nil:
		return nil, err
	case !c.forum:
		return nil, badRequest("the chat is not a forum")
	}
	return c, nil
}

// managesTopics reports whether the bot can change topics that it did not create. The caller holds mu.
func (c *Chat) managesTopics() bool {
	return c.kind == PrivateChat || c.bot == Administrator && !c.noTopics
}

// ForbidTopics takes away the bot's right to manage topics.
func (c *Chat) ForbidTopics() {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.noTopics = true
}

// managed returns the topic that a call changes. If the bot may not change the topic, managed returns an error with the
// given text.
func (s *Server) managed(q *request, forbidden string) (*Chat, *Topic, *Error) {
	c, err := s.forumTarget(q)
	if err != nil {
		return nil, nil, err
	}
	t := c.topics[TopicID(q.integer("message_thread_id"))]
	switch {
	case t == nil:
		return nil, nil, badRequest("TOPIC_ID_INVALID")
	case !t.byBot && !c.managesTopics():
		return nil, nil, badRequest("%s", forbidden)
	}
	return c, t, nil
}

func (s *Server) editForumTopic(q *request) (any, *Error) {
	c, t, err := s.managed(q, "not enough rights to edit the topic")
	if err != nil {
		return nil, err
	}
	now, changes := *t, map[string]any{}
	if q.params["name"] != "" { // an empty name leaves the name unchanged
		if now.Name, err = topicName(q); err != nil {
			return nil, err
		}
		changes["name"] = now.Name
	}
	if _, given := q.params["icon_custom_emoji_id"]; given {
		if now.Icon, err = topicIcon(q); err != nil {
			return nil, err
		}
		changes["icon_custom_emoji_id"] = now.Icon
	}
	switch {
	case len(changes) == 0:
		return true, nil
	case now == *t:
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	*t = now
	what := "topic is now called " + now.Name
	if changes["name"] == nil {
		what = "topic has another icon: " + topicIcons()[now.Icon]
	}
	s.noteTopic(c, t, what, "forum_topic_edited", changes)
	return true, nil
}

// topicIcons maps IDs of custom emoji to the emoji that they show. All bots can use these IDs for topics.
func topicIcons() map[string]string {
	return map[string]string{
		"5312536423851630001": "💡", "5312016608254762256": "⚡️", "5417915203100613993": "💬", "5377316857231450742": "❓",
		"5379748062124056162": "❗️", "5237699328843200968": "✅", "5309832892262654231": "🤖", "5350554349074391003": "💻",
	}
}

// TopicEmoji returns the emoji of an icon, or "" if the icon is unknown.
func TopicEmoji(icon string) string { return topicIcons()[icon] }

func (s *Server) getForumTopicIconStickers(*request) (any, *Error) {
	var all []map[string]any
	icons := topicIcons()
	for _, id := range slices.Sorted(maps.Keys(icons)) {
		all = append(all, map[string]any{
			"file_id": "icon" + id, "file_unique_id": "unique" + id, "type": "custom_emoji", "width": 512,
			"height":      512,
			"is_animated": true, "is_video": false, "emoji": icons[id], "custom_emoji_id": id, "set_name": "Topics",
		})
	}
	return all, nil
}

const notToggled = "not enough rights to close or open the topic"

func (s *Server) closeForumTopic(q *request) (any, *Error) {
	c, t, err := s.managed(q, notToggled)
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
	c, t, err := s.managed(q, notToggled)
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
	c, t, err := s.managed(q, "not enough rights to delete the topic")
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
