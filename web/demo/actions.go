package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/web"
)

// actionRequest asks the server to act as a user in a chat.
type actionRequest struct {
	Chat    telegram.ChatID    `json:"chat"`
	Topic   telegram.TopicID   `json:"topic"`
	From    telegram.UserID    `json:"from"`
	Message telegram.MessageID `json:"message"`
	ReplyTo telegram.MessageID `json:"replyTo"`
	Text    string             `json:"text"`
	Data    string             `json:"data"`
	Stop    int                `json:"stop"`
}

// actor is the user who acts, with the chat and the message that the request names. If the request names no message,
// the actor has the zero message.
type actor struct {
	chat *telegram.Chat
	user *telegram.Person
	on   telegram.Message
}

type action func(ctx context.Context, who actor, q actionRequest) (any, error)

const (
	maxRequest   = 1 << 20
	maxTopic     = 128
	pressTimeout = 20 * time.Second
)

var (
	errNoChat    = errors.New("there is no such chat")
	errNoUser    = errors.New("this user does not write in this chat")
	errNoMessage = errors.New("this message is gone")
	errNothing   = errors.New("there is nothing to send")
)

// actions returns all actions. The keys are the last parts of the requests' paths.
func (p *Page) actions() map[string]action {
	return map[string]action{
		"send": send, "press": press, "react": react, "edit": edit, "delete": remove, "topic": topic,
		"tour": p.tour.start, "restart": p.restart,
	}
}

// serveAction decodes a request, finds its chat, user and message, and calls act.
func (p *Page) serveAction(act action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q actionRequest
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q); err != nil {
			web.Fail(w, http.StatusBadRequest, "the request cannot be read")
			return
		}
		who, err := p.actor(q)
		if err != nil {
			web.Fail(w, http.StatusNotFound, err.Error())
			return
		}
		answer, err := act(r.Context(), who, q)
		if err != nil {
			web.Fail(w, http.StatusUnprocessableEntity, err.Error())
			return
		}
		web.Answer(w, answer)
	})
}

func (p *Page) actor(q actionRequest) (who actor, err error) {
	for _, c := range p.opts.Telegram.Chats() {
		if c.ID() == q.Chat {
			who.chat = c
		}
	}
	if who.chat == nil {
		return who, errNoChat
	}
	v := who.chat.View()
	if !slices.Contains(wireChatOf(who.chat, v).Users, q.From) {
		return who, errNoUser
	}
	who.user = p.opts.Telegram.Person(q.From, "")
	if q.Message != 0 {
		m, ok := v.Message(q.Message)
		if !ok {
			return who, errNoMessage
		}
		who.on = m
	}
	return who, nil
}

// options returns the options of a message: the topic, and the message to which it replies.
func (q actionRequest) options() (opts []telegram.SendOption) {
	if q.Topic != 0 {
		opts = append(opts, telegram.InTopic(q.Topic))
	}
	if q.ReplyTo != 0 {
		opts = append(opts, telegram.ReplyTo(q.ReplyTo))
	}
	return opts
}

func send(_ context.Context, who actor, q actionRequest) (any, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, errNothing
	}
	sent := who.user.Send(who.chat, strings.TrimSpace(q.Text), q.options()...)
	return map[string]any{"id": sent.ID}, nil
}

func press(ctx context.Context, who actor, q actionRequest) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	answer, err := who.user.Press(ctx, who.on, q.Data)
	switch {
	case errors.Is(err, telegram.ErrNoButton):
		return nil, errors.New("the message does not show this button any more")
	case err != nil:
		return nil, errors.New("ductor did not answer the button")
	}
	return map[string]any{"text": answer.Text, "alert": answer.Alert}, nil
}

func react(_ context.Context, who actor, q actionRequest) (any, error) {
	if q.Text != "" && !telegram.ReactionAllowed(q.Text) {
		return nil, errors.New("Telegram does not know this reaction")
	}
	who.user.React(who.on, q.Text)
	return struct{}{}, nil
}

func edit(_ context.Context, who actor, q actionRequest) (any, error) {
	if who.on.From.ID != who.user.ID() {
		return nil, errors.New("only who wrote a message can change it")
	}
	if strings.TrimSpace(q.Text) == "" {
		return nil, errNothing
	}
	who.user.Edit(who.on, strings.TrimSpace(q.Text))
	return struct{}{}, nil
}

func remove(_ context.Context, who actor, _ actionRequest) (any, error) {
	who.user.Delete(who.on)
	return struct{}{}, nil
}

func topic(_ context.Context, who actor, q actionRequest) (any, error) {
	name := strings.TrimSpace(q.Text)
	if name == "" || len([]rune(name)) > maxTopic {
		return nil, errors.New("a topic needs a name of at most 128 characters")
	}
	if !who.chat.Info().Forum {
		return nil, errors.New("this chat has no topics")
	}
	return map[string]any{"id": who.user.Topic(who.chat, name).ID}, nil
}

func (p *Page) restart(ctx context.Context, _ actor, _ actionRequest) (any, error) {
	if err := p.opts.Bot.Restart(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}
