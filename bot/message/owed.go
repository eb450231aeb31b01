package message

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// owed manages messages that are stored in the database before they are sent. Messages of the same conversation are
// sent in the order in which they were stored.
type owed struct {
	wake  chan struct{} // capacity 1; a value means that messages were stored
	stuck chan error    // capacity 1; the error of a message that was not sent: Run must call collect again later

	mu      sync.Mutex
	held    map[string]bool         // keys of messages that collect must skip; see Messages.hold
	arrival map[string]func(id int) // callbacks by message key; called with the ID of the sent message
	pause   time.Duration           // pause after the last failed round; 0 if a message was sent since then
}

// failed records a failed round, and returns the pause before the next one.
func (o *owed) failed() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pause = min(max(2*o.pause, owedRetry), owedRetryMax)
	return o.pause
}

func (o *owed) succeeded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pause = 0
}

func newOwed() owed {
	return owed{
		wake: make(chan struct{}, 1), stuck: make(chan error, 1),
		held: make(map[string]bool), arrival: make(map[string]func(int)),
	}
}

const (
	maxHeld     = 128
	maxArrivals = 256 // limit for owed.arrival, because callbacks of messages that are never sent stay in it
	lastCollect = 5 * time.Second

	// Pauses after an error of the database or outbox. The pause doubles with each round in which no message is sent.
	owedRetry    = 5 * time.Second
	owedRetryMax = 15 * time.Second
)

// Compose returns a message. The caller must store it in the same transaction as the event that caused the message, and
// then call Wake to send it. Compose shortens text that is too long. It panics if the content does not fit into a
// single request.
func Compose(to orchestrator.ConversationID, c Content) orchestrator.Message {
	if !c.carried() {
		panic(fmt.Sprintf("message: no call carries %d files, %d rows of buttons and %d blocks", len(c.Files),
			len(c.Keyboard), len(c.Rich)))
	}
	c.Text = render.Shorten(c.Text, render.MessageLimit)
	return orchestrator.Message{
		Key: "notice/" + rand.Text(), Conversation: to, State: orchestrator.Pending, Content: c.Encode(),
	}
}

// AsidePrefix is the prefix of the keys of asides. An aside is a message that an agent sends to the chat while its turn
// is still running; see PostAside.
const AsidePrefix = "aside/"

// AsidesOf returns the prefix of the keys of all asides of a turn; see AsidePrefix.
func AsidesOf(turn cli.TurnID) string { return AsidePrefix + string(turn) + "/" }

// maxAsides is the maximum number of asides in the outbox; see AsidePrefix. Further asides wait in the database.
const maxAsides = 8

// PostAside stores and sends a message that an agent writes during its turn. It is like Post, but users do not wait for
// the message, so the message has a lower priority.
func (s *Messages) PostAside(ctx context.Context, to orchestrator.ConversationID, turn cli.TurnID,
	markdown string) error {
	return s.post(ctx, to, AsidesOf(turn), markdown)
}

// Withdraw drops stored messages of a conversation. It drops the messages whose keys have the given prefix, unless they
// are already being sent.
func (s *Messages) Withdraw(ctx context.Context, in orchestrator.ConversationID, prefix string) error {
	rows, err := s.store.OwedMessages(ctx)
	if err != nil {
		return fmt.Errorf("list messages: %w", err)
	}
	for _, row := range rows {
		if row.Conversation != in || row.State != orchestrator.Pending || !strings.HasPrefix(row.Key, prefix) {
			continue
		}
		row.State, row.Content = orchestrator.Removed, nil
		if err := s.store.SaveMessage(ctx, row); err != nil {
			return fmt.Errorf("withdraw a message: %w", err)
		}
	}
	return nil
}

// filesPrefix is the prefix of the keys of messages with files from the spool.
const filesPrefix = "files/"

// ComposeFiles is like Compose, for a request to send files. The request has the given key and may need several
// messages; n is the index of the message.
func ComposeFiles(to orchestrator.ConversationID, key string, n int, c Content) orchestrator.Message {
	m := Compose(to, c)
	m.Key = fmt.Sprint(filesPrefix, key, "/", n)
	return m
}

// Composed reports whether the messages of the request with the given key are stored; see ComposeFiles. It returns
// false if Telegram rejected the first message.
func (s *Messages) Composed(ctx context.Context, key string) (bool, error) {
	row, err := s.store.FindMessage(ctx, fmt.Sprint(filesPrefix, key, "/", 0))
	if err != nil {
		return false, fmt.Errorf("find a message: %w", err)
	}
	return row.State != "" && row.State != orchestrator.Failed, nil
}

// Post stores Markdown as one or more messages and sends them.
func (s *Messages) Post(ctx context.Context, to orchestrator.ConversationID, markdown string) error {
	return s.post(ctx, to, "", markdown)
}

func (s *Messages) post(ctx context.Context, to orchestrator.ConversationID, prefix, markdown string) error {
	for _, part := range render.Split(render.Markdown(markdown), render.FullMessage) {
		m := Compose(to, Content{Text: part.Text})
		m.Key = prefix + m.Key
		if err := s.store.SaveMessage(ctx, m); err != nil {
			return fmt.Errorf("store a message: %w", err)
		}
	}
	s.Wake()
	return nil
}

// PostOnce stores a message under the given key and sends it. If a message with the same key exists, PostOnce does
// nothing.
func (s *Messages) PostOnce(ctx context.Context, to orchestrator.ConversationID, key string, c Content) error {
	m := Compose(to, c)
	m.Key = key
	added, err := s.store.AddMessage(ctx, m)
	if err != nil {
		return fmt.Errorf("store a message: %w", err)
	}
	if added {
		s.Wake()
	}
	return nil
}

// typedPrefix is the prefix of the keys of messages that PostTyped sends.
const typedPrefix = "typed/"

// PostTyped is like PostOnce, for a text that the bot's owner typed in a terminal. It has a higher priority than other
// messages, so that the text appears before the agent's answer.
func (s *Messages) PostTyped(ctx context.Context, to orchestrator.ConversationID, id string, c Content) error {
	return s.PostOnce(ctx, to, typedPrefix+id, c)
}

// SendOwed passes stored messages to the outbox. Call it only after Run has started.
func (s *Messages) SendOwed(ctx context.Context) error { return s.collect(ctx) }

// Keep stores a message and sends it.
func (s *Messages) Keep(ctx context.Context, m orchestrator.Message) error {
	if err := s.store.SaveMessage(ctx, m); err != nil {
		return fmt.Errorf("store a message: %w", err)
	}
	s.Wake()
	return nil
}

// Follow implements updates.Sender. arrived must not block.
func (s *Messages) Follow(key string, arrived func(id int)) {
	s.owed.mu.Lock()
	defer s.owed.mu.Unlock()
	for other := range s.owed.arrival {
		if len(s.owed.arrival) < maxArrivals {
			break
		}
		delete(s.owed.arrival, other)
	}
	s.owed.arrival[key] = arrived
}

func (s *Messages) arrived(key string, id int) {
	s.owed.mu.Lock()
	f := s.owed.arrival[key]
	delete(s.owed.arrival, key)
	s.owed.mu.Unlock()
	if f != nil {
		f(id)
	}
}

// Wake implements updates.Sender.
func (s *Messages) Wake() { signal(s.owed.wake, struct{}{}) }

func signal[T any](c chan<- T, value T) {
	select {
	case c <- value:
	default:
	}
}

// Run sends stored messages until ctx is done, including those of the previous process. Outbox.Drain can then still
// send the messages in the outbox. All other messages stay in the database.
func (s *Messages) Run(ctx context.Context) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	waits := true // true while the timer retry is running
	retryAfter := func(err error) {
		if waits || ctx.Err() != nil {
			return
		}
		pause := s.owed.failed()
		s.log.Warn("stored messages were not sent", "err", err, "again_in", pause)
		retry.Reset(pause)
		waits = true
	}
	for {
		select {
		case <-s.owed.wake:
			waits = false
		case <-retry.C:
			waits = false
		case err := <-s.owed.stuck:
			retryAfter(err)
			continue
		case <-ctx.Done():
			// Call collect one last time, because the newest stored messages may not be in the outbox yet.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCollect)
			defer cancel()
			if err := s.collect(last); err != nil {
				s.log.Warn("collect messages", "err", err)
			}
			return
		}
		if err := s.collect(ctx); err != nil {
			retryAfter(err)
		}
	}
}

// collect passes stored messages to the outbox. A message may be sent while collect reads the database. A second
// request to send it then does nothing.
func (s *Messages) collect(ctx context.Context) error {
	rows, err := s.store.OwedMessages(ctx)
	if err != nil {
		return fmt.Errorf("list messages: %w", err)
	}
	for _, row := range rows {
		if !s.hold(row.Key) {
			continue
		}
		spec := Spec{Key: row.Key, Turn: row.Turn, To: row.Conversation, Order: "of/" + string(row.Conversation.Key())}
		if strings.HasPrefix(row.Key, filesPrefix) {
			spec.Order, spec.Uploads = "files/"+spec.Order, true
		}
		priority := outbox.Awaited
		switch {
		case strings.HasPrefix(row.Key, AsidePrefix):
			priority = outbox.Aside
		case strings.HasPrefix(row.Key, typedPrefix):
			priority = outbox.Urgent
		}
		if c, err := decode(row.Content); err == nil {
			s.notice(row.Conversation, row.Key, c)
		}
		m := s.Open(spec)
		if m.spec.Content = m.ownContent; priority == outbox.Aside {
			m.spec.Content = m.asideContent
		}
		m.landed = func(err error) {
			s.drop(row.Key)
			if err == nil {
				s.owed.succeeded()
				s.Wake() // the outbox now has space for the next message
			} else {
				signal(s.owed.stuck, err)
			}
		}
		m.Update(priority)
	}
	return nil
}

func (s *Messages) notice(in orchestrator.ConversationID, key string, c Content) {
	if s.Noticed != nil && c.Text.Text != "" && !strings.HasPrefix(key, typedPrefix) {
		s.Noticed(in, key, c.Text.Text)
	}
}

// hold reserves a message for the caller, who may then pass it to the outbox. Until drop is called with the same key,
// collect skips the message. hold returns false if the message is already reserved, or if too many messages are
// reserved.
func (s *Messages) hold(key string) bool {
	s.owed.mu.Lock()
	defer s.owed.mu.Unlock()
	if s.owed.held[key] || len(s.owed.held) >= maxHeld {
		return false
	}
	if strings.HasPrefix(key, AsidePrefix) {
		asides := 0
		for other := range s.owed.held {
			if strings.HasPrefix(other, AsidePrefix) {
				asides++
			}
		}
		if asides >= maxAsides {
			return false
		}
	}
	s.owed.held[key] = true
	return true
}

func (s *Messages) drop(key string) {
	s.owed.mu.Lock()
	defer s.owed.mu.Unlock()
	delete(s.owed.held, key)
}

// ownContent returns the content in the database.
func (m *Message) ownContent(ctx context.Context) (Content, error) {
	m.mu.Lock()
	data := m.row.Content
	m.mu.Unlock()
	if data == nil {
		err := m.record(ctx)
		if lost, unreadable := decode(m.trouble.lost); m.trouble.lost != nil && unreadable == nil {
			m.forgetFiles(ctx, lost, orchestrator.Unknown)
		}
		return Content{}, err
	}
	c, err := decode(data)
	if err != nil {
		m.log.Error("a message cannot be read", "err", err)
		return c, cmp.Or(m.save(ctx, orchestrator.Failed, 0), outbox.ErrNotNeeded)
	}
	return c, nil
}

// asideContent returns the content of an aside. It returns ErrNotNeeded if Withdraw has dropped the aside.
func (m *Message) asideContent(ctx context.Context) (Content, error) {
	row, err := m.all.store.FindMessage(ctx, m.spec.Key)
	if err != nil {
		return Content{}, fmt.Errorf("load a message: %w", err)
	}
	if row.State == orchestrator.Removed {
		return Content{}, outbox.ErrNotNeeded
	}
	return m.ownContent(ctx)
}

// Hold returns all stored messages whose keys have the given prefix. They are not sent until the caller calls Release.
// Call Hold before Run.
func (s *Messages) Hold(ctx context.Context, prefix string) (held []orchestrator.Message, err error) {
	rows, err := s.store.OwedMessages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	for _, row := range rows {
		if strings.HasPrefix(row.Key, prefix) && s.hold(row.Key) {
			held = append(held, row)
		}
	}
	return held, nil
}

// Release sends a message that Hold returned, with the content of row. If the message is already in the chat, Release
// edits it. If Telegram did not confirm the message, Release sends the content as a new message.
func (s *Messages) Release(ctx context.Context, row orchestrator.Message) error {
	save := true
	anew := row
	if row.State == orchestrator.Sending || row.State == orchestrator.Unknown {
		anew.Key, anew.State, anew.ID = row.Key+"/anew", orchestrator.Pending, 0
		known, err := s.store.FindMessage(ctx, anew.Key)
		if err != nil {
			return fmt.Errorf("find a message: %w", err)
		}
		save = known.State == "" // otherwise, the previous process has already stored anew
	}
	if save {
		if err := s.store.SaveMessage(ctx, anew); err != nil {
			return fmt.Errorf("store a message: %w", err)
		}
	}
	s.drop(row.Key)
	s.Wake()
	return nil
}
