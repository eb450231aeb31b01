// Package message sends, edits and deletes messages until each chat shows the wanted content. It stores the state of
// each message in the database, so that the next process can continue after a crash.
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

// Client makes requests to Telegram. *tgapi.Client implements it.
type Client interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
	SendFiles(ctx context.Context, f tgapi.Files) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	EditRich(ctx context.Context, chat int64, message int, blocks []render.Block, k tgapi.Keyboard) error
	EditKeyboard(ctx context.Context, chat int64, message int, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
}

// Messages manages the messages in all chats. It is safe for concurrent use.
type Messages struct {
	out    *outbox.Outbox
	client Client
	store  orchestrator.MessageStore
	lang   *lang.Choices
	log    *slog.Logger
	owed   owed
	spool  *Spool // nil: messages cannot have files from a spool
	// Noticed is called with the text of each message that is stored before it is sent, and with each text that is
	// passed to Message.Announce. It is not called for messages of PostTyped. It may be nil.
	Noticed func(in orchestrator.ConversationID, key, text string)

	flights   *flights
	reachable reachability
	unsaved   unsaved
}

// New returns a Messages. Run sends the messages that are in the database.
func New(out *outbox.Outbox, client Client, store orchestrator.MessageStore, l *lang.Choices,
	log *slog.Logger) *Messages {
	return &Messages{out: out, client: client, store: store, lang: l, log: log, owed: newOwed(), flights: newFlights()}
}

// WithSpool sets the spool for files. It must be called before Run.
func (s *Messages) WithSpool(spool *Spool) *Messages {
	s.spool = spool
	return s
}

// Spec describes how to send a message.
type Spec struct {
	Key  string // key of the message in the database
	Turn cli.TurnID
	To   orchestrator.ConversationID
	// Content returns the current content of the message. It is called before each request. If it returns ErrNotNeeded,
	// no request is made. Content is nil if the caller uses Begin and Do.
	Content func(ctx context.Context) (Content, error)
	New     bool           // the database has no message with this Key yet
	Order   string         // messages with the same Order are sent one after the other
	Delay   time.Duration  // pause before the first request
	Uploads bool           // true if requests can take minutes; requests for other messages then run in parallel
	Called  func(*Message) // called after each request that will not be retried; may be nil
}

// Open returns the message with the key of spec. If the message is stored, Load reads its state.
func (s *Messages) Open(spec Spec) *Message {
	if spec.Order == "" {
		spec.Order = spec.Key
	}
	m := &Message{
		all: s, spec: spec,
		log: s.log.With("message", spec.Key, "chat", spec.To.Chat, "topic", spec.To.Topic),
		row: orchestrator.Message{Key: spec.Key, Turn: spec.Turn, Conversation: spec.To, State: orchestrator.Pending},
	}
	if spec.New {
		m.storage = kept
	}
	return m
}

// Replace changes the content of a stored message, as soon as the chat's budget allows.
func (s *Messages) Replace(key string, in orchestrator.ConversationID, c Content) {
	s.Open(Spec{Key: key, To: in, Content: func(context.Context) (Content, error) { return c, nil }}).
		Update(outbox.Awaited)
}

// OpenAll opens all stored messages of a turn, and returns them by key. specOf must return the Spec for a key.
func (s *Messages) OpenAll(ctx context.Context, turn cli.TurnID,
	specOf func(key string) Spec) (map[string]*Message, error) {
	rows, err := s.store.MessagesOf(ctx, turn)
	if err != nil {
		return nil, fmt.Errorf("load the messages of a turn: %w", err)
	}
	all := make(map[string]*Message)
	for _, row := range rows {
		m := s.Open(specOf(row.Key))
		m.restore(row)
		all[row.Key] = m
	}
	return all, nil
}

// KeyAt returns the key of the message with the given ID, or "" if the database does not contain the message.
func (s *Messages) KeyAt(ctx context.Context, in orchestrator.ConversationID, id int) (string, error) {
	row, err := s.store.MessageAt(ctx, in, id)
	if err != nil {
		return "", fmt.Errorf("find a message: %w", err)
	}
	return row.Key, nil
}

// calls describes the requests of a message that are in the outbox. Message.mu guards it.
type calls struct {
	delayed bool // true after the first call of Update, which is the only one that waits for Spec.Delay
	waits   bool // true if a request is waiting, which will call Content when it starts
	urgency outbox.Priority
	fails   int // number of failed requests since the last successful one
}

// Update makes the chat show the content that Spec.Content returns. p is the priority of the requests. Update does not
// wait for these requests.
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
		Idempotent: true, Run: m.advance, // advance handles messages that Telegram did not confirm
	}, func(err error) { m.called(p, err) })
}

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

// Pauses before a failed request is repeated. The pause doubles with each failure.
const (
	retryPause    = 5 * time.Second
	retryPauseMax = 5 * time.Minute
)

// called handles the end of a request. The outbox has finished or dropped the request.
func (m *Message) called(p outbox.Priority, err error) {
	m.mu.Lock()
	pause := min(retryPause<<min(m.calls.fails, 10), retryPauseMax)
	m.calls.waits = false
	if m.calls.fails++; err == nil {
		m.calls.fails = 0
	}
	m.mu.Unlock()
	if err != nil && m.landed == nil {
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
	case !errors.Is(err, outbox.ErrClosed): // ErrClosed means that ductor stops; the next process sends the message
		// Retry soon, because a user may be waiting.
		time.AfterFunc(pause, func() { m.Update(p) })
	}
}
