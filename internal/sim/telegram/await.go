package telegram

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// View is the visible content of a chat at one moment.
type View struct {
	Chat     ChatID
	Title    string
	Messages []Message // messages that were not deleted, the oldest first
	Action   Action    // activity of the bot, such as typing; a new message of the bot clears it
	Drafts   []Draft
}

// View returns the current content of the chat.
func (c *Chat) View() View {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.view()
}

func (c *Chat) view() View {
	v := View{Chat: c.id, Title: c.title, Action: c.action, Drafts: c.shownDrafts()}
	v.Messages = make([]Message, 0, len(c.messages))
	for _, m := range c.messages {
		if !m.Deleted {
			v.Messages = append(v.Messages, m.Message)
		}
	}
	return v
}

// Messages returns the messages that the chat shows, oldest first.
func (c *Chat) Messages() []Message { return c.View().Messages }

// History returns all messages with all their versions, oldest first. It includes deleted messages.
func (c *Chat) History() []Message {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	list := make([]Message, 0, len(c.messages))
	for _, m := range c.messages {
		list = append(list, m.Message)
	}
	return list
}

// FromBot returns the messages that the bot has written.
func (v View) FromBot() []Message {
	return slices.DeleteFunc(slices.Clone(v.Messages), func(m Message) bool { return !m.From.Bot || m.Service != "" })
}

// InTopic returns the view of one topic. If id is zero, it returns the messages in the topic General or in no topic.
func (v View) InTopic(id TopicID) View {
	v.Messages = slices.DeleteFunc(slices.Clone(v.Messages), func(m Message) bool { return m.Topic != id })
	return v
}

// Last returns the bot's newest message. It returns false if the bot has not sent any message.
func (v View) Last() (Message, bool) {
	bot := v.FromBot()
	if len(bot) == 0 {
		return Message{}, false
	}
	return bot[len(bot)-1], true
}

// Find returns the newest message of the bot that contains the given text. It returns false if no message contains the
// text.
func (v View) Find(part string) (Message, bool) {
	for _, m := range slices.Backward(v.FromBot()) {
		if strings.Contains(m.Text, part) {
			return m, true
		}
	}
	return Message{}, false
}

// Message returns the message with this ID. It returns false if the chat does not show the message.
func (v View) Message(id MessageID) (Message, bool) {
	for _, m := range v.Messages {
		if m.ID == id {
			return m, true
		}
	}
	return Message{}, false
}

// HasButton reports whether the message has a button with this text or this callback data.
func (m Message) HasButton(name string) bool {
	_, ok := button(m.Keyboard, name)
	return ok
}

// Await waits until ok returns true for the content of the chat. It calls ok immediately and after each change. If ctx
// is done first, or the server is closed first, Await returns an error that describes the chat.
func (c *Chat) Await(ctx context.Context, ok func(View) bool) (View, error) {
	for {
		c.srv.mu.Lock()
		v := c.view()
		changed := c.changed.wait()
		c.srv.mu.Unlock()
		if ok(v) {
			return v, nil
		}
		select {
		case <-changed:
		case <-c.srv.base.Done():
			return v, ErrClosed
		case <-ctx.Done():
			return v, fmt.Errorf("await in chat %d: %w; it shows:\n%s", c.id, context.Cause(ctx), v.Transcript())
		}
	}
}

// AwaitText waits until a message of the bot contains a text, and returns that message.
func (c *Chat) AwaitText(ctx context.Context, part string) (Message, error) {
	return c.AwaitMessage(ctx, func(m Message) bool { return strings.Contains(m.Text, part) })
}

// AwaitMessage waits until ok returns true for a message of the bot, and returns the newest such message.
func (c *Chat) AwaitMessage(ctx context.Context, ok func(Message) bool) (Message, error) {
	var found Message
	_, err := c.Await(ctx, func(v View) bool {
		for _, m := range slices.Backward(v.FromBot()) {
			if ok(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}

// await waits until ok returns true. It calls ok after each change of the server, and holds the lock during the call.
func (s *Server) await(ctx context.Context, what string, ok func() bool) error {
	for {
		s.mu.Lock()
		done := ok()
		changed := s.changed.wait()
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-s.base.Done():
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w", what, context.Cause(ctx))
		}
	}
}
