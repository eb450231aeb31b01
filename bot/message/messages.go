// Package message makes chat messages show their intended content. It sends each message once, edits it until it
// shows the content that its producer wants, and deletes it when it is no longer needed. After a crash it continues.
package message

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Client makes the Telegram calls that show messages.
type Client interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
	SendFiles(ctx context.Context, f tgapi.Files) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	EditRich(ctx context.Context, chat int64, message int, blocks []render.Block, k tgapi.Keyboard) error
	EditKeyboard(ctx context.Context, chat int64, message int, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
}

// Messages manages the messages of all chats. Safe for concurrent use.
type Messages struct {
	out    *outbox.Outbox
	client Client
	store  orchestrator.MessageStore
	lang   *lang.Choices
	log    *slog.Logger
	owed   owed
	spool  *Spool // nil: messages have no spooled files
	// Noticed gets the text of each stored message before it is sent, and texts that producers announce. It does not
	// get the texts of PostTyped. It may be nil.
	Noticed func(in orchestrator.ConversationID, key, text string)

	flights   *flights
	reachable reachability
}

// New returns Messages. Run sends the messages that the store still contains.
func New(out *outbox.Outbox, client Client, store orchestrator.MessageStore, l *lang.Choices,
	log *slog.Logger) *Messages {
	return &Messages{out: out, client: client, store: store, lang: l, log: log, owed: newOwed(), flights: newFlights()}
}

// WithSpool allows messages to send files of a spool. Call it before Run.
func (s *Messages) WithSpool(spool *Spool) *Messages {
	s.spool = spool
	return s
}

// Spec describes a message to open.
type Spec struct {
	Key  string // identifies the message in the store
	Turn cli.TurnID
	To   orchestrator.ConversationID
	// Content returns the current content of the message. Messages calls it before each Telegram call. If Content
	// returns ErrNotNeeded, no call is made. Content is nil if the producer calls Begin and Do itself.
	Content func(ctx context.Context) (Content, error)
	Order   string         // messages with the same Order are sent in the order of their first Update
	Delay   time.Duration  // pause before the first call
	Uploads bool           // calls may take minutes, so they run in parallel to other calls of the chat
	Called  func(*Message) // called after each call, except if the call is retried; may be nil
}

// Open returns the message of a spec. If the message is stored, it continues with the stored state.
func (s *Messages) Open(spec Spec) *Message {
	if spec.Order == "" {
		spec.Order = spec.Key
	}
	return &Message{
		all: s, spec: spec,
		log: s.log.With("message", spec.Key, "chat", spec.To.Chat, "topic", spec.To.Topic),
		row: orchestrator.Message{Key: spec.Key, Turn: spec.Turn, Conversation: spec.To, State: orchestrator.Pending},
	}
}

// OpenAll opens all stored messages of a turn and returns them by key. of returns the spec for a key.
func (s *Messages) OpenAll(ctx context.Context, turn cli.TurnID,
	of func(key string) Spec) (map[string]*Message, error) {
	rows, err := s.store.MessagesOf(ctx, turn)
	if err != nil {
		return nil, fmt.Errorf("load the messages of a turn: %w", err)
	}
	all := make(map[string]*Message)
	for _, row := range rows {
		m := s.Open(of(row.Key))
		m.restore(row)
		all[row.Key] = m
	}
	return all, nil
}

// KeyAt returns the key of the message with an id, or "" for an unknown message.
func (s *Messages) KeyAt(ctx context.Context, in orchestrator.ConversationID, id int) (string, error) {
	row, err := s.store.MessageAt(ctx, in, id)
	if err != nil {
		return "", fmt.Errorf("find a message: %w", err)
	}
	return row.Key, nil
}

// calls tracks a message's calls in the outbox. The message's lock guards it.
type calls struct {
	delayed bool // the first call was posted with Spec.Delay
	waits   bool // a waiting call will read the content
	urgency outbox.Priority
	fails   int // failures since the last successful call
}

// Update makes the chat show the current content, with calls of priority p. It does not wait.
func (m *Message) Update(p outbox.Priority) {
	m.mu.Lock()
	if m.calls.waits && m.calls.urgency <= p {
		m.mu.Unlock()
		return
	}
	delay := m.spec.Delay
	if m.calls.delayed {
		delay = 0
	}
	m.calls.delayed, m.calls.waits, m.calls.urgency = true, true, p
	m.mu.Unlock()
	m.all.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(m.spec.To.Chat), Priority: p, Key: fmt.Sprint("message/", m.spec.Order, "/", p),
		Delay:      delay,
		Parallel:   m.spec.Uploads,
		Idempotent: true, Run: m.advance, // advance handles sends with an unknown outcome
	}, func(err error) { m.called(p, err) })
}

// advance makes the next step.
func (m *Message) advance(ctx context.Context) error {
	m.mu.Lock()
	m.calls.waits = false
	m.mu.Unlock()
	if err := m.Load(ctx); err != nil {
		return err
	}
	want, err := m.spec.Content(ctx)
	if err != nil {
		return err
	}
	return m.Do(ctx, m.Begin(want), want)
}

// Pauses before a failed call is retried. They double each time.
const (
	retryPause    = 5 * time.Second
	retryPauseMax = 5 * time.Minute
)

// called schedules the next step after a call.
func (m *Message) called(p outbox.Priority, err error) {
	m.mu.Lock()
	pause := min(retryPause<<min(m.calls.fails, 10), retryPauseMax)
	m.calls.waits = false
	if m.calls.fails++; err == nil {
		m.calls.fails = 0
	}
	m.mu.Unlock()
	if err != nil {
		m.log.Warn("the chat does not show a message as it is to be", "err", err)
	}
	switch {
	case m.landed != nil:
		m.landed(err)
	case err == nil:
		m.all.release(m)
		if m.spec.Called != nil {
			m.spec.Called(m)
		}
	case !errors.Is(err, outbox.ErrClosed): // ErrClosed: the next process shows it
		// Retry without waiting for an event: a user may be waiting, and perhaps no event comes.
		time.AfterFunc(pause, func() { m.Update(p) })
	}
}
