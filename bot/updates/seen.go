package updates

import "time"

// seen remembers recent messages that were meant for the bot, so that the router can handle edits. An edit can correct
// a command. An edit can also add the bot's name to a message that was not meant for the bot before. Only the router
// uses seen.
type seen struct {
	now   func() time.Time
	since time.Time // all messages for the bot after this time are in seen.texts
	texts map[seenKey]string
}

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
	return &seen{now: now, since: now(), texts: make(map[seenKey]string)}
}

// remember stores a message that was meant for the bot. commandText is "" if the message was not a command.
func (s *seen) remember(m *wireMessage, commandText string) {
	if len(s.texts) >= seenMost {
		clear(s.texts)
		s.since = s.now()
	}
	s.texts[seenKey{m.Chat.ID, m.ID}] = commandText
}

// isNew reports whether an edited message must be handled like a new one. This is the case if the message is a command
// whose text has changed, or if it was not meant for the bot before the edit.
func (s *seen) isNew(m *wireMessage) bool {
	was, known := s.texts[seenKey{m.Chat.ID, m.ID}]
	if known {
		return was != "" && was != m.Text
	}
	sent := time.Unix(m.Date, 0)
	return !m.Chat.private() && sent.After(s.since) && s.now().Sub(sent) < seenFor
}
