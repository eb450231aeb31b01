package telegram

import (
	"encoding/json"
)

// outgoing contains the parameters that are common to all methods that send a message.
type outgoing struct {
	chat *Chat
	base message
}

// outgoing parses and checks the chat, the topic, the replied message and the keyboard of a call. The caller holds mu.
func (s *Server) outgoing(q *request) (outgoing, *Error) {
	keyboard, err := q.keyboard()
	if err != nil {
		return outgoing{}, err
	}
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return outgoing{}, err
	}
	o := outgoing{chat: c, base: message{chat: c}}
	o.base.Keyboard = keyboard
	o.base.Silent = q.boolean("disable_notification")
	if o.base.Topic, err = c.sendTopic(q); err != nil {
		return outgoing{}, err
	}
	o.base.ReplyTo, err = c.replyTarget(q)
	if reply := c.find(o.base.ReplyTo); reply != nil && o.base.Topic == 0 {
		o.base.Topic = reply.Topic
	}
	return o, err
}

// replyTarget returns the message to which a call replies. The ID is in reply_parameters or, from older clients, in
// reply_to_message_id.
func (c *Chat) replyTarget(q *request) (MessageID, *Error) {
	params := struct {
		ID    MessageID `json:"message_id"`
		Loose bool      `json:"allow_sending_without_reply"`
	}{q.messageID("reply_to_message_id"), q.boolean("allow_sending_without_reply")}
	if text := q.params["reply_parameters"]; text != "" {
		if err := json.Unmarshal([]byte(text), &params); err != nil {
			return 0, badRequest("can't parse reply parameters JSON object")
		}
	}
	switch {
	case params.ID == 0:
		return 0, nil
	case c.find(params.ID) != nil:
		return params.ID, nil
	case params.Loose:
		return 0, nil
	}
	return 0, badRequest("message to be replied not found")
}

func (s *Server) sendMessage(q *request) (any, *Error) {
	if q.params["text"] == "" {
		return nil, badRequest("message text is empty")
	}
	text, err := q.formattedParam("text", "entities")
	if err != nil {
		return nil, err
	}
	o, err := s.outgoing(q)
	switch {
	case err != nil:
		return nil, err
	case text.text == "":
		return nil, badRequest("text must be non-empty")
	case Units(text.text) > MaxText:
		return nil, badRequest("message is too long")
	}
	o.base.Text, o.base.Entities = text.text, text.entities
	return s.storeFromBot(o.chat, o.base).wire(), nil
}

func (s *Server) forwardMessage(q *request) (any, *Error) {
	o, source, err := s.copied(q, "message to forward not found")
	if err != nil {
		return nil, err
	}
	o.base.Keyboard = nil
	o.base.forward = &source.From
	return s.storeFromBot(o.chat, o.base).wire(), nil
}

func (s *Server) copyMessage(q *request) (any, *Error) {
	o, _, err := s.copied(q, "message to copy not found")
	if err != nil {
		return nil, err
	}
	return map[string]MessageID{"message_id": s.storeFromBot(o.chat, o.base).ID}, nil
}

func (s *Server) copied(q *request, missing string) (outgoing, *message, *Error) {
	from, err := s.target(q, "from_chat_id", reading)
	if err != nil {
		return outgoing{}, nil, err
	}
	source := from.find(q.messageID("message_id"))
	if source == nil {
		return outgoing{}, nil, badRequest("%s", missing)
	}
	o, err := s.outgoing(q)
	o.base.show(source.formatted())
	o.base.Media = source.Media
	o.base.Caption = source.Caption
	return o, source, err
}

// ownMessage returns the message of the bot that a call edits. The caller holds mu.
func (s *Server) ownMessage(q *request) (*message, *Error) {
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	id := q.messageID("message_id")
	if id <= 0 {
		return nil, badRequest("message identifier is not specified")
	}
	m := c.find(id)
	switch {
	case m == nil:
		return nil, badRequest("message to edit not found")
	case !m.From.Bot || m.Service != "" || m.forward != nil:
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

func (s *Server) editMessageText(q *request) (any, *Error) {
	if content, err := q.richParam(); s.has("sendRichMessage") && (content != nil || err != nil) {
		return s.editRich(q, content, err)
	}
	if q.params["text"] == "" {
		return nil, badRequest("message text is empty")
	}
	text, keyboard, m, err := s.edit(q, "text", "entities")
	switch {
	case err != nil:
		return nil, err
	case m.Media != nil:
		return nil, badRequest("there is no text in the message to edit")
	case text.text == "":
		return nil, badRequest("text must be non-empty")
	case Units(text.text) > MaxText:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	return s.applyEdit(m, text, keyboard)
}

func (s *Server) editMessageCaption(q *request) (any, *Error) {
	text, keyboard, m, err := s.edit(q, "caption", "caption_entities")
	switch {
	case err != nil:
		return nil, err
	case m.Media == nil:
		return nil, badRequest("there is no caption in the message to edit")
	case Units(text.text) > MaxCaption:
		return nil, badRequest("MEDIA_CAPTION_TOO_LONG")
	}
	return s.applyEdit(m, text, keyboard)
}

func (s *Server) editMessageReplyMarkup(q *request) (any, *Error) {
	keyboard, err := q.keyboard()
	if err != nil {
		return nil, err
	}
	m, err := s.ownMessage(q)
	if err != nil {
		return nil, err
	}
	return s.applyEdit(m, m.formatted(), keyboard)
}

func (s *Server) edit(q *request, text, entities string) (formatted, [][]Button, *message, *Error) {
	f, err := q.formattedParam(text, entities)
	if err != nil {
		return f, nil, nil, err
	}
	keyboard, err := q.keyboard()
	if err != nil {
		return f, nil, nil, err
	}
	m, err := s.ownMessage(q)
	return f, keyboard, m, err
}

// applyEdit replaces the text and the keyboard of a message. As in the real server, an edit without a keyboard removes
// the keyboard of the message.
func (s *Server) applyEdit(m *message, text formatted, keyboard [][]Button) (any, *Error) {
	if m.formatted().equal(text) && sameKeyboard(m.Keyboard, keyboard) {
		return nil, badRequest(notModified)
	}
	m.revise(s, text, keyboard)
	return m.wire(), nil
}
