package message

import (
	"ductor/bot/outbox"
	"ductor/orchestrator"
)

// Early sends a message before other messages of the chat, and before the database contains it. Keep and Kept store the
// message later, together with the event that caused it.
func (s *Messages) Early(spec Spec) *Message {
	m := s.Open(spec)
	m.storage = early
	s.hold(spec.Key)
	m.Update(outbox.Urgent)
	return m
}

// Announce passes the final text of a message to Messages.Noticed. The message must come from Messages.Early.
func (m *Message) Announce(last Content) { m.all.notice(m.spec.To, m.spec.Key, last) }

// Keep returns a row for the database. The row contains last, which is the final content of the message. The caller
// must store the row and then call Kept. If ductor crashes before the chat shows this content, the next process shows
// it. Keep returns false if no row is necessary, because the chat already shows the final content.
//
// Between Keep and Kept, this process starts no request that sends the message. After a crash, the next process could
// otherwise send the message a second time.
func (m *Message) Keep(last Content) (orchestrator.Message, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if (m.row.State == orchestrator.Sent || m.row.State == orchestrator.Unknown) && m.shown == last.fingerprint() {
		m.forgetLocked()
		return orchestrator.Message{}, false
	}
	if m.storage = putting; !m.overLocked() {
		m.row.Content = last.Encode()
	}
	return m.row, true
}

// overLocked reports whether the message is not in the chat and will not be sent, because sending failed or the message
// was deleted.
func (m *Message) overLocked() bool {
	return m.row.State == orchestrator.Failed || m.row.State == orchestrator.Removed
}

// forgetLocked removes the message's key from owed.held if the database has no row of the message, so that collect
// cannot find it anyway.
func (m *Message) forgetLocked() {
	if m.storage == early {
		m.all.drop(m.spec.Key)
	}
}

// Kept must be called after Keep has returned a row. It makes the chat show the current content. inDatabase is false if
// the caller could not store the row.
func (m *Message) Kept(inDatabase bool) {
	m.mu.Lock()
	switch {
	case m.storage == early:
	case !inDatabase:
		m.storage, m.row.Content = early, nil
	case m.storage == overtaken:
		m.storage = behind
	default:
		m.storage = kept
	}
	m.forgetLocked()
	m.mu.Unlock()
	m.Update(outbox.Urgent)
}

// release removes the message's key from owed.held if the row in the database has no content to send, so that collect
// ignores the row anyway.
func (s *Messages) release(m *Message) {
	m.mu.Lock()
	over := m.row.Content == nil && m.storage.upToDate()
	m.mu.Unlock()
	if over {
		s.drop(m.spec.Key)
	}
}
