package telegram

import (
	"slices"
	"strings"
)

// Person is a user of Telegram. The bot gets the user's actions as updates.
type Person struct {
	srv      *Server
	id       UserID
	name     string
	username string
	language string

	blocked, deactivated bool
	rank                 map[ChatID]Membership
}

// Person returns the user with this ID, and creates the user if necessary.
func (s *Server) Person(id UserID, name string) *Person {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.people[id]; p != nil {
		return p
	}
	p := &Person{
		srv: s, id: id, name: name, language: "en", rank: map[ChatID]Membership{},
		username: strings.ToLower(strings.ReplaceAll(name, " ", "_")),
	}
	s.people[id] = p
	return p
}

// ID returns the user's ID.
func (p *Person) ID() UserID { return p.id }

// Name returns the user's first name.
func (p *Person) Name() string { return p.name }

// SetLanguage sets the language of the user's app, for example "de". If code is empty, the app does not report a
// language.
func (p *Person) SetLanguage(code string) {
	p.srv.mu.Lock()
	defer p.srv.mu.Unlock()
	p.language = code
}

// SetRank sets the user's membership in a group, as getChatMember returns it. The default is Member.
func (p *Person) SetRank(c *Chat, rank Membership) {
	p.srv.mu.Lock()
	defer p.srv.mu.Unlock()
	p.rank[c.id] = rank
}

func (p *Person) membership(c *Chat) Membership {
	if rank, ok := p.rank[c.id]; ok {
		return rank
	}
	return Member
}

// Block makes the user block the bot. The bot gets a my_chat_member update, and its calls for the chat fail with 403.
func (p *Person) Block() { p.setBlocked(Member, Kicked) }

// Unblock reverts Block.
func (p *Person) Unblock() { p.setBlocked(Kicked, Member) }

func (p *Person) setBlocked(before, now Membership) {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	p.blocked = now == Kicked
	if c := s.chats[ChatID(p.id)]; c != nil {
		s.pushMembership(c, p, before, now)
	}
}

// DeleteAccount deletes the user's account, so that the bot's calls for the private chat fail.
func (p *Person) DeleteAccount() {
	p.srv.mu.Lock()
	defer p.srv.mu.Unlock()
	p.deactivated = true
}

// SendOption changes a message that a user sends.
type SendOption func(*message)

// InTopic sends the message to a topic.
func InTopic(id TopicID) SendOption { return func(m *message) { m.Topic = id } }

// ReplyTo makes the message a reply to another message in the same chat.
func ReplyTo(id MessageID) SendOption { return func(m *message) { m.ReplyTo = id } }

// WithEntities formats the text. It is not necessary for commands, mentions and links, because the server finds them
// itself.
func WithEntities(list ...Entity) SendOption {
	return func(m *message) { m.Entities = slices.Clone(list) }
}

// WithCaption adds a text to a photo, a document or an album.
func WithCaption(text string) SendOption {
	return func(m *message) { m.Text, m.Caption = text, true }
}

// WithLastCaption adds a text to the last file of an album.
func WithLastCaption(text string) SendOption { return func(m *message) { m.lastCaption = text } }

// Forwarding makes the message a forwarded message of another user.
func Forwarding(from *Person) SendOption {
	return func(m *message) { m.forward = &Sender{ID: from.id, Name: from.name} }
}

// ViaBot marks the message as created by an inline bot with this name.
func ViaBot(username string) SendOption { return func(m *message) { m.via = username } }

// InOneGo makes the IDs of the message and of the previous message consecutive. In Telegram, this happens to a
// forwarded message and the comment before it. Without this option, the server skips an ID between two messages,
// because all private chats share one counter.
func InOneGo() SendOption { return func(m *message) { m.joined = true } }

// Send sends a text. If the text is longer than MaxText, Send splits it like Paste and returns the first message.
func (p *Person) Send(c *Chat, text string, opts ...SendOption) Message {
	return p.Paste(c, text, opts...)[0]
}

// Paste sends a text of any length. Like Telegram's apps, it splits the text into messages of at most MaxText code
// units.
func (p *Person) Paste(c *Chat, text string, opts ...SendOption) []Message {
	var sent []Message
	for i, part := range cutPaste(text) {
		sent = append(sent, p.post(c, message{Message: Message{Text: part}, joined: i > 0}, opts))
	}
	return sent
}

func cutPaste(text string) []string {
	var parts []string
	begin, units := 0, 0
	for at, r := range text {
		if units+runeUnits(r) > MaxText {
			parts = append(parts, text[begin:at])
			begin, units = at, 0
		}
		units += runeUnits(r)
	}
	return append(parts, text[begin:])
}

// Edit changes the text of a message that the user has sent. The bot gets an edited_message update.
func (p *Person) Edit(sent Message, text string) Message {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[sent.Chat]
	m := c.find(sent.ID)
	if m == nil {
		return Message{}
	}
	m.revise(s, formatted{text, findEntities(text), nil}, m.Keyboard)
	s.push("edited_message", m.wire())
	return m.Message
}

// Delete deletes a message for all users. The bot gets no update.
func (p *Person) Delete(sent Message) {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.chats[sent.Chat].find(sent.ID); m != nil {
		m.Deleted = true
		m.chat.touch()
	}
}

// post adds a message of the user to its chat, and sends it to the bot.
func (p *Person) post(c *Chat, m message, opts []SendOption) Message {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.postLocked(c, m, opts).Message
}

func (p *Person) postLocked(c *Chat, m message, opts []SendOption) *message {
	s := p.srv
	for _, opt := range opts {
		opt(&m)
	}
	if f, err := normalise(m.Text, m.Entities); err == nil {
		m.Text, m.Entities = f.text, f.entities
	}
	if len(m.Entities) == 0 {
		m.Entities = findEntities(m.Text)
	}
	if n := len(c.messages); n > 0 && c.messages[n-1].author == p && !m.joined {
		c.nextID()
	}
	m.author = p
	m.From = Sender{ID: p.id, Name: p.name}
	if c.kind == PrivateChat && c.owner == p {
		c.started, p.blocked = true, false
	}
	stored := s.store(c, m)
	if s.seenByBot(stored) {
		s.push("message", stored.wire())
	}
	return stored
}

// seenByBot reports whether the bot gets a message. With privacy mode, the bot does not get all messages of a group.
func (s *Server) seenByBot(m *message) bool {
	c := m.chat
	if c.kind != PrivateChat && (c.bot == Left || c.bot == Kicked) {
		return false
	}
	if !s.opts.HideGroupTalk || c.kind == PrivateChat || c.bot == Administrator {
		return true
	}
	if reply := c.lookup(m.ReplyTo); reply != nil && reply.From.Bot {
		return true
	}
	for _, e := range m.Entities {
		word := Slice(m.Text, e.Offset, e.Length)
		_, to, addressed := strings.Cut(word, "@")
		mine := strings.EqualFold(to, s.opts.Username)
		if (e.Type == "bot_command" && (!addressed || mine)) || (e.Type == "mention" && mine) {
			return true
		}
	}
	return false
}

type wireUser struct {
	ID        UserID `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username,omitempty"`
	Language  string `json:"language_code,omitempty"`
}

func (p *Person) wire() *wireUser {
	return &wireUser{ID: p.id, FirstName: p.name, Username: p.username, Language: p.language}
}

func (s *Server) botUser() *wireUser {
	return &wireUser{ID: s.opts.BotID, IsBot: true, FirstName: s.opts.BotName, Username: s.opts.Username}
}

func (s *Server) getMe(*request) (any, *Error) {
	return struct {
		*wireUser
		CanJoinGroups bool `json:"can_join_groups"`
		ReadsAll      bool `json:"can_read_all_group_messages"`
		Inline        bool `json:"supports_inline_queries"`
		HasTopics     bool `json:"has_topics_enabled"`
	}{s.botUser(), true, !s.opts.HideGroupTalk, false, s.anyPrivateTopics()}, nil
}

func (s *Server) anyPrivateTopics() bool {
	for _, c := range s.chats {
		if c.kind == PrivateChat && c.forum {
			return true
		}
	}
	return false
}

// BotID returns the ID of the bot.
func (s *Server) BotID() UserID { return s.opts.BotID }
