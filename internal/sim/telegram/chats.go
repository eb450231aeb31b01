package telegram

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// UserID is Telegram's ID of a user or a bot.
type UserID int64

// ChatID is Telegram's ID of a chat. A private chat has the ID of its user. Groups have negative IDs.
type ChatID int64

// ChatKind is the type of a chat, as in the Bot API.
type ChatKind string

// ChatKind values. A forum is a supergroup with topics.
const (
	PrivateChat ChatKind = "private"
	BasicGroup  ChatKind = "group"
	Supergroup  ChatKind = "supergroup"
)

// Membership is the bot's status in a chat.
type Membership string

// Membership values. An Administrator has all rights that a bot can have.
const (
	Member        Membership = "member"
	Administrator Membership = "administrator"
	Left          Membership = "left"
	Kicked        Membership = "kicked"
	Restricted    Membership = "restricted" // can read, but not write
)

// Chat is a chat on the server. The lock of the server guards its fields.
type Chat struct {
	srv      *Server
	id       ChatID
	kind     ChatKind
	title    string
	owner    *Person // user of a private chat; nil for a group
	bot      Membership
	forum    bool
	started  bool // the user has written to the bot
	moved    ChatID
	topics   map[TopicID]*Topic
	messages []*message // all messages, even deleted ones, in the order of their IDs
	lastID   MessageID  // used only in supergroups, which count their messages separately
	action   Action
	drafts   []Draft
	changed  signal
	bucket   *bucket
	noFiles  bool // the bot must not send files
	noTopics bool // the bot must not manage topics
}

// Private returns the private chat of a user with the bot. The user has pressed Start. Private creates the user if
// necessary.
func (s *Server) Private(id UserID, name string) *Chat {
	p := s.Person(id, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(ChatID(id), PrivateChat, name)
	c.owner, c.started = p, true
	return c
}

// Group returns a small group in which the bot is a member. In Telegram, the IDs of such groups are -1 and below.
func (s *Server) Group(id ChatID, title string) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chat(id, BasicGroup, title)
}

// Supergroup returns a large group without topics. In Telegram, the IDs of such groups are -1000000000001 and below.
func (s *Server) Supergroup(id ChatID, title string) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chat(id, Supergroup, title)
}

// Forum returns a supergroup with topics in which the bot is an administrator.
func (s *Server) Forum(id ChatID, title string) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(id, Supergroup, title)
	c.forum, c.bot = true, Administrator
	return c
}

// chat returns the chat with this ID, and creates the chat if necessary. The caller holds mu.
func (s *Server) chat(id ChatID, kind ChatKind, title string) *Chat {
	if c := s.chats[id]; c != nil {
		return c
	}
	c := &Chat{srv: s, id: id, kind: kind, title: title, bot: Member, topics: map[TopicID]*Topic{}}
	s.chats[id] = c
	return c
}

// ID returns the chat's number.
func (c *Chat) ID() ChatID { return c.id }

// Person returns the user of a private chat, and nil for a group.
func (c *Chat) Person() *Person {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.owner
}

// EnableTopics enables topics in a private chat. In Telegram, the user does this in the settings of the bot.
func (c *Chat) EnableTopics() {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.forum = true
}

// SetBot changes the bot's membership in a group, for example to kicked, left or administrator. The bot gets a
// my_chat_member update.
func (c *Chat) SetBot(now Membership, by *Person) {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	before := c.bot
	c.bot = now
	s.pushMembership(c, by, before, now)
	c.touch()
}

// Upgrade turns a small group into a supergroup with a new ID. Telegram does this when a group grows. From then on,
// calls with the old ID return an error that contains the new ID.
func (c *Chat) Upgrade(to ChatID, by *Person) *Chat {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.chat(to, Supergroup, c.title)
	c.moved = to
	s.service(c, by, "group upgraded", map[string]any{"migrate_to_chat_id": to})
	s.service(now, by, "upgraded from a group", map[string]any{"migrate_from_chat_id": c.id})
	return now
}

// touch wakes the goroutines that wait for a change of the chat. The caller holds mu.
func (c *Chat) touch() {
	c.changed.broadcast()
	c.srv.changed.broadcast()
}

type access int

const (
	reading access = iota
	writing
)

// target returns the chat of a call. It returns an error if the bot lacks the right to make the call. The caller holds
// mu.
func (s *Server) target(q *request, name string, want access) (*Chat, *Error) {
	text := q.params[name]
	if text == "" {
		return nil, badRequest("%s is empty", name)
	}
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	c := s.chats[ChatID(id)]
	if err != nil || c == nil {
		return nil, badRequest("chat not found")
	}
	return c, c.allows(want)
}

func (c *Chat) allows(want access) *Error {
	if c.kind == PrivateChat {
		switch {
		case want == writing && c.owner.blocked:
			return forbidden("bot was blocked by the user")
		case want == writing && c.owner.deactivated:
			return forbidden("user is deactivated")
		case !c.started:
			return forbidden("bot can't initiate conversation with a user")
		}
		return nil
	}
	name := string(c.kind) + " chat"
	switch {
	case c.moved != 0 && want == writing:
		e := badRequest("group chat was upgraded to a supergroup chat")
		e.MigrateTo = c.moved
		return e
	case c.bot == Restricted && want == writing:
		return badRequest("not enough rights to send text messages to the chat")
	case c.bot == Kicked && (want == writing || c.kind == Supergroup):
		return forbidden("bot was kicked from the " + name)
	case c.bot == Left && (want == writing || c.kind == Supergroup):
		return forbidden("bot is not a member of the " + name)
	}
	return nil
}

// find returns the message with this ID. It returns nil if the message is unknown or deleted.
func (c *Chat) find(id MessageID) *message {
	m := c.lookup(id)
	if m == nil || m.Deleted {
		return nil
	}
	return m
}

func (c *Chat) lookup(id MessageID) *message {
	i, ok := slices.BinarySearchFunc(c.messages, id, func(m *message, id MessageID) int {
		return cmp.Compare(m.ID, id)
	})
	if !ok {
		return nil
	}
	return c.messages[i]
}

func (c *Chat) nextID() MessageID {
	if c.kind == Supergroup {
		c.lastID++
		return c.lastID
	}
	c.srv.lastID++
	return c.srv.lastID
}

type wireChat struct {
	ID        ChatID   `json:"id"`
	Type      ChatKind `json:"type"`
	Title     string   `json:"title,omitempty"`
	FirstName string   `json:"first_name,omitempty"`
	Username  string   `json:"username,omitempty"`
	IsForum   bool     `json:"is_forum,omitempty"`
}

func (c *Chat) wire() *wireChat {
	w := &wireChat{ID: c.id, Type: c.kind}
	if c.kind == PrivateChat {
		w.FirstName, w.Username = c.owner.name, c.owner.username
		return w
	}
	w.Title, w.IsForum = c.title, c.forum
	return w
}
