package telegram

import (
	"slices"
	"time"
)

// MessageID is the number of a message in its chat.
type MessageID int64

// Sender is the author of a message.
type Sender struct {
	ID   UserID
	Name string
	Bot  bool
}

// Version is the content of a message between two edits.
type Version struct {
	At       time.Time
	Text     string
	Entities []Entity
	Keyboard [][]Button
	Rich     []Block
}

// Message is the content of a message at one moment. Other values share its slices, so do not change them.
type Message struct {
	ID       MessageID
	Chat     ChatID
	Topic    TopicID // zero if the message is in the topic General or in no topic
	From     Sender
	Date     time.Time
	Edited   time.Time // time of the last edit; zero if the message was never edited
	Text     string    // text of the message, caption of Media, or texts of Rich
	Entities []Entity
	Rich     []Block // blocks of a rich message; nil for any other message
	Caption  bool
	Keyboard [][]Button // inline buttons
	ReplyTo  MessageID
	Media    *Media
	Album    string // ID of the album; the same for all messages of the album
	// Reactions are sorted by user.
	Reactions []Reaction
	Pinned    bool
	Silent    bool   // sent without a sound
	Service   string // the event that a service message reports
	Deleted   bool
	Versions  []Version // all versions, the current one last
}

// message is a Message with data that only the server needs.
type message struct {
	Message
	chat    *Chat
	author  *Person // nil for the bot
	forward *Sender
	via     string         // username of the inline bot that created the message
	extra   map[string]any // further fields of a service message
	rich    *rich          // content of a rich message; nil for any other message
	joined  bool           // the IDs of this message and the previous message are consecutive; see InOneGo
	// lastCaption is the caption of the last file, if this message begins an album.
	lastCaption string
}

// store adds a message to its chat, with an ID and a date. The caller holds mu.
func (s *Server) store(c *Chat, m message) *message {
	m.ID, m.Chat, m.chat, m.Date = c.nextID(), c.id, c, s.now()
	m.Versions = []Version{{m.Date, m.Text, m.Entities, m.Keyboard, m.Rich}}
	stored := &m
	c.messages = append(c.messages, stored)
	if keep := s.opts.KeepMessages; keep > 0 && len(c.messages) > keep {
		c.messages = slices.Delete(c.messages, 0, len(c.messages)-keep)
	}
	c.touch()
	return stored
}

// storeFromBot adds a message of the bot to its chat. It also ends the bot's typing, and the bot's draft in the topic.
func (s *Server) storeFromBot(c *Chat, m message) *message {
	m.From = Sender{ID: s.opts.BotID, Name: s.opts.BotName, Bot: true}
	c.action = Action{}
	c.endDrafts(m.Topic)
	return s.store(c, m)
}

// service adds a service message about an event, and sends it to the bot. The caller holds mu.
func (s *Server) service(c *Chat, by *Person, what string, extra map[string]any) *message {
	m := message{Message: Message{Service: what}, author: by, extra: extra}
	if by == nil {
		return s.storeFromBot(c, m)
	}
	m.From = Sender{ID: by.id, Name: by.name}
	stored := s.store(c, m)
	s.push("message", stored.wire())
	return stored
}

// revise adds a version to a message. The caller holds mu.
func (m *message) revise(s *Server, f formatted, keyboard [][]Button) {
	m.show(f)
	m.Keyboard, m.Edited = keyboard, s.now()
	m.Versions = append(m.Versions, Version{m.Edited, m.Text, m.Entities, m.Keyboard, m.Rich})
	if keep := s.opts.KeepVersions; keep > 0 && len(m.Versions) > keep {
		m.Versions = slices.Clone(m.Versions[len(m.Versions)-keep:])
	}
	m.chat.touch()
}

func (m *message) formatted() formatted { return formatted{m.Text, m.Entities, m.rich} }

func (m *message) show(f formatted) {
	m.Text, m.Entities, m.rich, m.Rich = f.text, f.entities, f.rich, nil
	if f.rich != nil {
		m.Rich = f.rich.blocks
	}
}

type wireMessage struct {
	ID         MessageID      `json:"message_id"`
	Topic      TopicID        `json:"message_thread_id,omitempty"`
	From       *wireUser      `json:"from,omitempty"`
	Date       int64          `json:"date"`
	EditDate   int64          `json:"edit_date,omitempty"`
	Chat       *wireChat      `json:"chat"`
	IsTopic    bool           `json:"is_topic_message,omitempty"`
	Reply      *wireMessage   `json:"reply_to_message,omitempty"`
	Forward    map[string]any `json:"forward_origin,omitempty"`
	Via        *wireUser      `json:"via_bot,omitempty"`
	Album      string         `json:"media_group_id,omitempty"`
	Text       string         `json:"text,omitempty"`
	Entities   []entityJSON   `json:"entities,omitempty"`
	Rich       any            `json:"rich_message,omitempty"`
	Photo      []photoSize    `json:"photo,omitempty"`
	Document   *wireFile      `json:"document,omitempty"`
	Voice      *wireFile      `json:"voice,omitempty"`
	Audio      *wireFile      `json:"audio,omitempty"`
	VideoNote  *wireFile      `json:"video_note,omitempty"`
	Caption    string         `json:"caption,omitempty"`
	CapEnts    []entityJSON   `json:"caption_entities,omitempty"`
	Markup     *wireMarkup    `json:"reply_markup,omitempty"`
	NewTopic   any            `json:"forum_topic_created,omitempty"`
	EndTopic   any            `json:"forum_topic_closed,omitempty"`
	AgainTopic any            `json:"forum_topic_reopened,omitempty"`
	NamedTopic any            `json:"forum_topic_edited,omitempty"`
	Pinned     *wireMessage   `json:"pinned_message,omitempty"`
	MovedTo    any            `json:"migrate_to_chat_id,omitempty"`
	MovedFrom  any            `json:"migrate_from_chat_id,omitempty"`
	Sticker    any            `json:"sticker,omitempty"`
	Location   any            `json:"location,omitempty"`
	Venue      any            `json:"venue,omitempty"`
	Contact    any            `json:"contact,omitempty"`
}

// entityJSON is an entity in the form that the bot gets. For a text_mention it contains the user.
type entityJSON struct {
	Entity
	User *wireUser `json:"user,omitempty"`
}

// wire returns the message in the form that the bot gets. It includes the message to which this message replies.
func (m *message) wire() *wireMessage {
	w := m.wireAlone()
	if reply := m.chat.find(m.ReplyTo); reply != nil {
		w.Reply = reply.wireAlone()
	}
	return w
}

func (m *message) wireAlone() *wireMessage {
	s := m.chat.srv
	w := &wireMessage{
		ID: m.ID, Topic: m.Topic, IsTopic: m.Topic != 0, Date: m.Date.Unix(), Chat: m.chat.wire(), Album: m.Album,
		Markup: wireKeyboard(m.Keyboard), From: s.botUser(),
	}
	if m.author != nil {
		w.From = m.author.wire()
	}
	if !m.Edited.IsZero() {
		w.EditDate = m.Edited.Unix()
	}
	if m.forward != nil {
		w.Forward = map[string]any{"type": "user", "date": w.Date, "sender_user": s.userJSON(m.forward.ID)}
	}
	if m.via != "" {
		w.Via = &wireUser{ID: viaBotID, IsBot: true, FirstName: m.via, Username: m.via}
	}
	switch {
	case m.rich != nil:
		w.Rich = map[string]any{"blocks": m.rich.raw}
	case m.Media == nil:
		w.Text, w.Entities = m.Text, s.entitiesJSON(m.Entities)
	default:
		w.Caption, w.CapEnts = m.Text, s.entitiesJSON(m.Entities)
		m.Media.wire(w)
	}
	w.NewTopic, w.EndTopic = m.extra["forum_topic_created"], m.extra["forum_topic_closed"]
	w.AgainTopic, w.NamedTopic = m.extra["forum_topic_reopened"], m.extra["forum_topic_edited"]
	w.MovedTo, w.MovedFrom = m.extra["migrate_to_chat_id"], m.extra["migrate_from_chat_id"]
	w.Sticker = m.extra["sticker"]
	w.Location, w.Venue, w.Contact = m.extra["location"], m.extra["venue"], m.extra["contact"]
	if pinned, ok := m.extra["pinned_message"].(*message); ok {
		w.Pinned = pinned.wireAlone()
	}
	return w
}

// viaBotID is the ID that all simulated inline bots have.
const viaBotID = 777_001

func (s *Server) userJSON(id UserID) *wireUser {
	if p := s.people[id]; p != nil {
		return p.wire()
	}
	return s.botUser()
}

func (s *Server) entitiesJSON(list []Entity) []entityJSON {
	out := make([]entityJSON, 0, len(list))
	for _, e := range list {
		j := entityJSON{Entity: e}
		if e.Type == "text_mention" {
			j.User = s.userJSON(e.UserID)
		}
		out = append(out, j)
	}
	return out
}
