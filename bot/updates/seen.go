package updates

import "time"

// seen remembers recent messages that were meant for the bot, so that the router can handle edits. An edit can correct
// a command. An edit can also add the bot's name to a message that was not meant for the bot before. Only the router
// uses seen.
type seen struct {
	now   func() time.Time
	since time.Time // all messages for the bot after this time are in seen.messages

	messages map[seenKey]seenMessage
}

// seenMessage records how the router handled a message.
type seenMessage struct {
	as   seenAs
	text string
}

type seenAs string

const (
	asPrompt  seenAs = "prompt"
	asTurn    seenAs = "turn"    // a command whose prompt became a turn, such as "/new fix the tests"
	asCommand seenAs = "command" // a command that did not become a turn
)

type seenKey struct {
	chat int64
	id   int
}

const (
	seenMost = 4096
	// seenFor is the maximum age of a message that is handled again after an edit.
	seenFor = time.Hour
)

func newSeen(now func() time.Time) *seen {
	return &seen{now: now, since: now(), messages: make(map[seenKey]seenMessage)}
}

// remember stores a message that was meant for the bot.
func (s *seen) remember(m *wireMessage, as seenAs) {
	if len(s.messages) >= seenMost {
		clear(s.messages)
		s.since = s.now()
	}
	text, _ := m.textAndEntities()
	s.messages[seenKey{m.Chat.ID, m.ID}] = seenMessage{as, text}
}

// was returns the message as it was before an edit. It returns the zero value for an unknown message.
func (s *seen) was(m *wireMessage) seenMessage { return s.messages[seenKey{m.Chat.ID, m.ID}] }

// isSame reports whether the text of the message has not changed. Telegram also reports an edit if, for example, only
// the preview of a link has changed.
func (was seenMessage) isSame(m *wireMessage) bool {
	text, _ := m.textAndEntities()
	return was.text == text
}

// isNew reports whether an edited message must be handled like a new one. This is the case if the message is a command
// whose text has changed, or if it was not meant for the bot before the edit.
func (s *seen) isNew(m *wireMessage) bool {
	if was := s.was(m); was.as != "" {
		return was.as == asCommand && !was.isSame(m)
	}
	sent := time.Unix(m.Date, 0)
	return !m.Chat.private() && sent.After(s.since) && s.now().Sub(sent) < seenFor
}
