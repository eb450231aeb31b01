package updates

import "time"

// seen stores recent messages and whether they were for the bot. So an edit can make a message one for the bot, or
// change a command. Only the router uses it.
type seen struct {
	now   func() time.Time
	since time.Time // start of the time for which all messages are stored
	texts map[seenKey]string
}

type seenKey struct {
	chat int64
	id   int
}

const (
	seenMost = 4096
	// seenFor is the maximum age of a message whose edit has an effect.
	seenFor = time.Hour
)

func newSeen(now func() time.Time) *seen {
	return &seen{now: now, since: now(), texts: make(map[seenKey]string)}
}

// remember records a message that was for the bot. command is the text of a command, or "" for a prompt.
func (s *seen) remember(m *wireMessage, command string) {
	if len(s.texts) >= seenMost {
		clear(s.texts)
		s.since = s.now()
	}
	s.texts[seenKey{m.Chat.ID, m.ID}] = command
}

// isNew reports whether to handle an edited message as a new message: it was a command and has changed, or it was not
// for the bot before. Edits of forgotten messages have no effect.
func (s *seen) isNew(m *wireMessage) bool {
	was, known := s.texts[seenKey{m.Chat.ID, m.ID}]
	if known {
		return was != "" && was != m.Text
	}
	sent := time.Unix(m.Date, 0)
	return !m.Chat.private() && sent.After(s.since) && s.now().Sub(sent) < seenFor
}
