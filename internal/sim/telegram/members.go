package telegram

import "time"

// Action is an activity of the bot, such as typing. The chat shows it for five seconds.
type Action struct {
	Kind  string
	Topic TopicID
	At    time.Time
}

func (s *Server) getChat(q *request) (any, *Error) {
	c, err := s.target(q, "chat_id", reading)
	if err != nil {
		return nil, err
	}
	return struct {
		*wireChat
		AccentColor  int              `json:"accent_color_id"`
		MaxReactions int              `json:"max_reaction_count"`
		Gifts        struct{}         `json:"accepted_gift_types"`
		Permissions  *map[string]bool `json:"permissions,omitempty"`
		Pinned       *wireMessage     `json:"pinned_message,omitempty"`
	}{wireChat: c.wire(), MaxReactions: 11, Pinned: c.lastPinned()}, nil
}

func (s *Server) getChatMember(q *request) (any, *Error) {
	c, err := s.target(q, "chat_id", reading)
	if err != nil {
		return nil, err
	}
	id := UserID(q.integer("user_id"))
	if id == s.opts.BotID {
		m := memberJSON(s.botUser(), c.bot)
		if c.bot == Administrator {
			m["can_manage_topics"] = !c.noTopics
		}
		return m, nil
	}
	p := s.people[id]
	if p == nil {
		return nil, badRequest("PARTICIPANT_ID_INVALID")
	}
	return memberJSON(p.wire(), p.membership(c)), nil
}

// memberJSON returns a member of a chat with the fields that the library go-telegram/bot requires.
func memberJSON(u *wireUser, is Membership) map[string]any {
	m := map[string]any{"user": u, "status": is}
	if is == Administrator {
		for _, right := range []string{"can_manage_chat", "can_delete_messages", "can_manage_topics",
			"can_pin_messages"} {
			m[right] = true
		}
	}
	if is == Kicked {
		m["until_date"] = 0
	}
	return m
}

func (s *Server) sendChatAction(q *request) (any, *Error) {
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	kind := q.params["action"]
	switch kind {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
		"choose_sticker", "find_location", "record_video_note", "upload_video_note":
	default:
		return nil, badRequest("wrong parameter action in request")
	}
	topic := TopicID(q.integer("message_thread_id"))
	if topic != 0 && topic != GeneralTopic {
		if _, err := c.topic(topic); err != nil {
			return nil, err
		}
	}
	c.action = Action{Kind: kind, Topic: topic, At: s.now()}
	c.touch()
	return true, nil
}
