// Package message has chat messages end up showing what they must: it sends each once, edits it until it shows what its
// producer wants, deletes it when it is no longer wanted, and continues with it after a crash.
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

// Client makes the calls that show messages.
type Client interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
	SendFiles(ctx context.Context, f tgapi.Files) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	EditRich(ctx context.Context, chat int64, message int, blocks []render.Block, k tgapi.Keyboard) error
	EditKeyboard(ctx context.Context, chat int64, message int, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
}

// Messages has the messages of all chats. Safe for concurrent use.
type Messages struct {
	out    *outbox.Outbox
	client Client
	store  orchestrator.MessageStore
	lang   *lang.Choices
	log    *slog.Logger
	owed   owed
	spool  *Spool // nil where no message has a file in it

	flights *flights
	reached reached
}

// New makes Messages. Run sends those that the store says are owed.
func New(out *outbox.Outbox, client Client, store orchestrator.MessageStore, l *lang.Choices, log *slog.Logger) *Messages {
	return &Messages{out: out, client: client, store: store, lang: l, log: log, owed: newOwed(), flights: newFlights()}
}

// WithSpool has messages send files of a spool. Call it before Run.
func (s *Messages) WithSpool(spool *Spool) *Messages {
	s.spool = spool
	return s
}

// Spec is what a message is made of.
type Spec struct {
	Key  string // names it in the store
	Turn cli.TurnID
	To   orchestrator.ConversationID
	// Content gives what the message is to show now. It is asked before each call; ErrNotNeeded means no call. It is nil
	// for a message whose producer calls Begin and Do.
	Content func(ctx context.Context) (Content, error)
	Order   string         // messages with an order are sent one after the other, as Update was called for them
	Delay   time.Duration  // of the first call
	Uploads bool           // its calls may take minutes, and are made beside the others of the chat
	Called  func(*Message) // is told when a call is decided, unless it failed and is made again; may be nil
}

// Open makes the message of a spec, or continues with the one that the store has.
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

// OpenAll makes the messages that the store has of a turn, by their keys. Each spec is as of gives it.
func (s *Messages) OpenAll(ctx context.Context, turn cli.TurnID, of func(key string) Spec) (map[string]*Message, error) {
	rows, err := s.store.MessagesOf(ctx, turn)
	if err != nil {
		return nil, fmt.Errorf("load the messages of a turn: %w", err)
	}
	all := make(map[string]*Message)
	for _, row := range rows {
		m := s.Open(of(row.Key))
		m.takeUp(row)
		all[row.Key] = m
	}
	return all, nil
}

// At gives the key of the message with a number in a conversation; empty for none.
func (s *Messages) At(ctx context.Context, in orchestrator.ConversationID, id int) (string, error) {
	row, err := s.store.MessageAt(ctx, in, id)
	if err != nil {
		return "", fmt.Errorf("find a message: %w", err)
	}
	return row.Key, nil
}

// calls is what the outbox has of a message. The lock of the message guards it.
type calls struct {
	delayed bool // the first call was posted
	waits   bool // a call waits, and will ask for the content
	urgency outbox.Priority
	fails   int // since the last call that succeeded
}

// Update has the chat show what the content is now, by a call of a priority. It does not wait.
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
		Chat: outbox.ChatOf(m.spec.To.Chat), Priority: p, Key: fmt.Sprint("message/", m.spec.Order, "/", p), Delay: delay,
		Beside:     m.spec.Uploads,
		Idempotent: true, Run: m.advance, // a send of which the outcome is unknown is no error
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

// Pauses before a call that failed is made again. They double.
const (
	retryPause    = 5 * time.Second
	retryPauseMax = 5 * time.Minute
)

// called continues after a call.
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
	case !errors.Is(err, outbox.ErrClosed): // else the next process shows it
		// A user may wait for it, and no other event may come that would repeat the call.
		time.AfterFunc(pause, func() { m.Update(p) })
	}
}
