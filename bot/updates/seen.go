package updates

import "time"

// seen remembers recent messages that were meant for the bot, so that the router can handle edits. An edit can add the
// bot's name to a message that was not for the bot, or correct a command. Only the router uses it.
type seen struct {
	now   func() time.Time
	since time.Time // all messages after this time are stored
	texts map[seenKey]string
}

type seenKey struct {
	chat int64
	id   int
}

const (
	seenMost = 4096
	// seenFor is how old a message may be to be handled again after an edit.
	seenFor = time.Hour
)

func newSeen(now func() time.Time) *seen {
	return &seen{now: now, since: now(), texts: make(map[seenKey]string)}
}

// remember stores a message that was meant for the bot. command is the text if it was a command, or "" if it was a
// prompt.
func (s *seen) remember(m *wireMessage, command string) {
	if len(s.texts) >= seenMost {
		clear(s.texts)
		s.since = s.now()
	}
	s.texts[seenKey{m.Chat.ID, m.ID}] = command
}

// isNew reports whether an edited message must be handled like a new one. This is the case if it was a command and its
// text has changed, or if it was not meant for the bot before.
func (s *seen) isNew(m *wireMessage) bool {
	was, known := s.texts[seenKey{m.Chat.ID, m.ID}]
	if known {
		return was != "" && was != m.Text
	}
	sent := time.Unix(m.Date, 0)
	return !m.Chat.private() && sent.After(s.since) && s.now().Sub(sent) < seenFor
}
