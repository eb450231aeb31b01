package updates

import "time"

// seen remembers the messages that were for us, so that an edit acts that makes one of a message which was none, or another
// command of a command. It is used by the router alone.
type seen struct {
	now   func() time.Time
	since time.Time // from when on it remembers all
	texts map[seenKey]string
}

type seenKey struct {
	chat int64
	id   int
}

const (
	seenMost = 4096
	// seenFor is how old a message may be whose edit acts: a later one is housekeeping.
	seenFor = time.Hour
)

func newSeen(now func() time.Time) *seen {
	return &seen{now: now, since: now(), texts: make(map[seenKey]string)}
}

// keep remembers a message that was for us: the text of a command, or none of a prompt.
func (s *seen) keep(m *wireMessage, command string) {
	if len(s.texts) >= seenMost {
		clear(s.texts)
		s.since = s.now()
	}
	s.texts[seenKey{m.Chat.ID, m.ID}] = command
}

// anew says whether an edited message is to be taken as a new one: it was a command and is not the same any more, or it was not
// for us. Of older messages nothing is known, and their edits do nothing.
func (s *seen) anew(m *wireMessage) bool {
	was, known := s.texts[seenKey{m.Chat.ID, m.ID}]
	if known {
		return was != "" && was != m.Text
	}
	sent := time.Unix(m.Date, 0)
	return !m.Chat.private() && sent.After(s.since) && s.now().Sub(sent) < seenFor
}
