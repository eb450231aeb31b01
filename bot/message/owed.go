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

// owed tracks messages that were stored together with the event that caused them. Each message is sent once, in the
// order in which the messages of its conversation were stored.
type owed struct {
	wake  chan struct{} // capacity 1: messages were stored
	stuck chan struct{} // capacity 1: collect must try again later, because no event will wake it

	mu      sync.Mutex
	held    map[string]bool // keys of messages that are in the outbox, or held back by Hold or an early message
	arrival map[string]func(id int)
}

func newOwed() owed {
	return owed{
		wake: make(chan struct{}, 1), stuck: make(chan struct{}, 1),
		held: make(map[string]bool), arrival: make(map[string]func(int)),
	}
}

// Limits for stored messages.
const (
	maxHeld     = 128             // limit of held
	maxArrivals = 256             // limit of callbacks for messages that are never sent
	owedRetry   = 5 * time.Second // pause after the store or the outbox was full
	lastCollect = 5 * time.Second
)

// Compose returns a row for the caller to store together with the event that caused it. Wake then sends the message.
// Compose cuts off text that does not fit into a message. It panics if no single Telegram call can send the content.
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

// AsidePrefix begins the keys of messages that agents sent while they worked; see PostAside.
const AsidePrefix = "aside/"

// AsidesOf returns the key prefix of the messages that PostAside sends for a turn.
func AsidesOf(turn cli.TurnID) string { return AsidePrefix + string(turn) + "/" }

// maxAsides limits the asides in the outbox. The others stay in the store, where Withdraw finds them.
const maxAsides = 8

// PostAside posts text that the agent of a turn writes while it works. Unlike messages of Post, these messages have a
// lower priority than messages that users wait for.
func (s *Messages) PostAside(ctx context.Context, to orchestrator.ConversationID, turn cli.TurnID,
	markdown string) error {
	return s.post(ctx, to, AsidesOf(turn), markdown)
}

// Withdraw drops the messages of a conversation whose keys have a prefix, unless sending has begun.
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

// filesPrefix starts the keys of stored messages with spooled files.
const filesPrefix = "files/"

// ComposeFiles returns a row for a message with files, for the caller to store; see Compose. key identifies the
// request, and n is the number of the message within the request.
func ComposeFiles(to orchestrator.ConversationID, key string, n int, c Content) orchestrator.Message {
	m := Compose(to, c)
	m.Key = fmt.Sprint(filesPrefix, key, "/", n)
	return m
}

// Composed reports whether messages of a request are stored. It ignores messages that their chat rejected.
func (s *Messages) Composed(ctx context.Context, key string) (bool, error) {
	row, err := s.store.FindMessage(ctx, fmt.Sprint(filesPrefix, key, "/", 0))
	if err != nil {
		return false, fmt.Errorf("find a message: %w", err)
	}
	return row.State != "" && row.State != orchestrator.Failed, nil
}

// Post stores Markdown as one or more messages, and sends them.
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

// PostOnce stores a message under a key and sends it. If the key exists, PostOnce does nothing.
func (s *Messages) PostOnce(ctx context.Context, to orchestrator.ConversationID, key string, c Content) error {
	row, err := s.store.FindMessage(ctx, key)
	if err != nil || row.State != "" {
		return err
	}
	m := Compose(to, c)
	m.Key = key
	return s.Keep(ctx, m)
}

// typedPrefix starts the keys of messages that show a text from a terminal. They are sent before the answer to the
// text.
const typedPrefix = "typed/"

// PostTyped is PostOnce for a text that the owner typed in a terminal. SendOwed sends it before other messages.
func (s *Messages) PostTyped(ctx context.Context, to orchestrator.ConversationID, id string, c Content) error {
	return s.PostOnce(ctx, to, typedPrefix+id, c)
}

// SendOwed passes all stored messages to the outbox, as far as it has room. Call it after Run has started.
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
func (s *Messages) Wake() { signal(s.owed.wake) }

// signal wakes the reader of c, which has capacity 1. It does nothing if a signal is pending.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run sends the stored messages until ctx is done, first the messages of the previous process. At the end, the
// outbox's Drain sends the messages that are already in the outbox. All others stay in the store.
func (s *Messages) Run(ctx context.Context) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-s.owed.wake:
		case <-retry.C:
		case <-s.owed.stuck:
			retry.Reset(owedRetry)
			continue
		case <-ctx.Done():
			// The messages of the last updates may not be in the outbox yet.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCollect)
			defer cancel()
			if err := s.collect(last); err != nil {
				s.log.Warn("collect messages", "err", err)
			}
			return
		}
		if err := s.collect(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("collect messages", "err", err)
			retry.Reset(owedRetry)
		}
	}
}

// collect passes stored messages to the outbox. If a message was sent while collect read the store, its call does
// nothing.
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
			priority = outbox.Urgent // as urgent as the first text of an answer
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
				s.Wake() // the outbox has room for another message
			} else {
				signal(s.owed.stuck) // it stays in the store, and collect retries soon or after a restart
			}
		}
		m.Update(priority)
	}
	return nil
}

// notice passes the text of a message to Noticed.
func (s *Messages) notice(in orchestrator.ConversationID, key string, c Content) {
	if s.Noticed != nil && c.Text.Text != "" && !strings.HasPrefix(key, typedPrefix) {
		s.Noticed(in, key, c.Text.Text)
	}
}

// hold keeps collect from sending a message. It returns false if the message is already held, or if too many messages
// are.
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

// ownContent returns the stored content.
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

// asideContent returns the stored content, unless the message was withdrawn while it waited.
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

// Hold lists the stored messages whose keys have a prefix, and does not send them until Release. Call it before Run.
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

// Release shows the content of a held message. It edits the message, or sends a new one if the outcome of the first
// is unknown.
func (s *Messages) Release(ctx context.Context, row orchestrator.Message) error {
	save := true
	anew := row
	if row.State == orchestrator.Sending || row.State == orchestrator.Unknown {
		anew.Key, anew.State, anew.ID = row.Key+"/anew", orchestrator.Pending, 0
		known, err := s.store.FindMessage(ctx, anew.Key)
		if err != nil {
			return fmt.Errorf("find a message: %w", err)
		}
		save = known.State == "" // otherwise the previous process stored it
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
