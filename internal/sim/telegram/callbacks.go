package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Answer is the bot's answer to a button: a notification at the top of the chat, or an alert.
type Answer struct {
	Text  string
	Alert bool
	URL   string
}

// Tap is a press of a button by a user, whether or not the bot has answered it.
type Tap struct {
	ID     string
	srv    *Server
	answer Answer
	done   chan struct{}
}

// callback is the data of a Tap that answerCallbackQuery needs.
type callback struct {
	tap     *Tap
	expires time.Time
}

var (
	// ErrNoButton is returned if a user presses a button that the message does not have.
	ErrNoButton = errors.New("the message shows no such button")
	// ErrNoAnswer is returned if the bot did not answer a button in time.
	ErrNoAnswer = errors.New("the bot did not answer the button")
	// ErrClosed is returned by methods that wait, if the server is closed meanwhile.
	ErrClosed = errors.New("the simulated Telegram is closed")
)

// Press presses the button with this text or callback data, and waits for the bot's answer. The wait ends after
// Options.CallbackTimeout, or when ctx is done.
func (p *Person) Press(ctx context.Context, on Message, name string) (Answer, error) {
	tap, err := p.Tap(on, name)
	if err != nil {
		return Answer{}, err
	}
	return tap.Answer(ctx)
}

// Tap presses a button without waiting for the answer. It returns ErrNoButton if the message has no such button.
func (p *Person) Tap(on Message, name string) (*Tap, error) {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.live(on)
	if m == nil {
		return nil, fmt.Errorf("press %q: %w", name, ErrNoButton)
	}
	b, ok := button(m.Keyboard, name)
	if !ok || b.Data == "" {
		return nil, fmt.Errorf("press %q on %v: %w", name, m.Keyboard, ErrNoButton)
	}
	return s.tap(p, m, b.Data), nil
}

// TapData presses a button with this callback data. The message need not have the button any more: a phone can show an
// old version of the message.
func (p *Person) TapData(on Message, data string) *Tap {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.chats[on.Chat].lookup(on.ID)
	if m == nil {
		m = &message{Message: on, chat: s.chats[on.Chat]}
	}
	return s.tap(p, m, data)
}

func (s *Server) live(on Message) *message {
	if c := s.chats[on.Chat]; c != nil {
		return c.find(on.ID)
	}
	return nil
}

func (s *Server) tap(p *Person, m *message, data string) *Tap {
	t := &Tap{ID: strconv.FormatInt(4000000000+s.nextSerial(), 10), srv: s, done: make(chan struct{})}
	for id, old := range s.callbacks {
		if !s.now().Before(old.expires) {
			delete(s.callbacks, id)
		}
	}
	s.callbacks[t.ID] = &callback{tap: t, expires: s.now().Add(s.opts.CallbackTimeout)}
	s.pushFor("callback_query", map[string]any{
		"id": t.ID, "from": p.wire(), "message": m.wireOrInaccessible(), "chat_instance": strconv.Itoa(int(m.Chat)),
		"data": data,
	}, callbackUpdateLife)
	return t
}

// wireOrInaccessible returns the message of a button in the form that the bot gets. If the message was deleted, the bot
// only gets the chat, the ID and the date 0.
func (m *message) wireOrInaccessible() any {
	if m.Deleted || m.Date.IsZero() {
		return map[string]any{"chat": m.chat.wire(), "message_id": m.ID, "date": 0}
	}
	return m.wire()
}

// Answer waits for the bot's answer. If no answer arrives, it returns ErrNoAnswer, ErrClosed or the error of ctx.
func (t *Tap) Answer(ctx context.Context) (Answer, error) {
	timer := time.NewTimer(t.srv.opts.CallbackTimeout)
	defer timer.Stop()
	select {
	case <-t.done:
		return t.answer, nil
	case <-timer.C:
		return Answer{}, ErrNoAnswer
	case <-t.srv.base.Done():
		return Answer{}, ErrClosed
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("await the answer to a button: %w", context.Cause(ctx))
	}
}

func (s *Server) answerCallbackQuery(q *request) (any, *Error) {
	id := q.params["callback_query_id"]
	c := s.callbacks[id]
	delete(s.callbacks, id)
	if c == nil || !s.now().Before(c.expires) {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	text := q.params["text"]
	if Units(text) > 200 {
		s.callbacks[id] = c
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	c.tap.answer = Answer{Text: text, Alert: q.boolean("show_alert"), URL: q.params["url"]}
	close(c.tap.done)
	return true, nil
}
