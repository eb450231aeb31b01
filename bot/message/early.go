package message

import (
	"ductor/bot/outbox"
	"ductor/orchestrator"
)

// Early sends a message before other messages of the chat, and before it is stored. Keep and Kept store the message
// later, together with the event that caused it.
func (s *Messages) Early(spec Spec) *Message {
	m := s.Open(spec)
	m.storage = early
	s.hold(spec.Key)
	m.Update(outbox.Urgent)
	return m
}

// Announce passes the final text of an early message to Messages.Noticed.
func (m *Message) Announce(last Content) { m.all.notice(m.spec.To, m.spec.Key, last) }

// Keep returns a row for the database that contains last, the final content. The caller must store the row and then
// call Kept. If ductor crashes before the chat shows last, the next process shows it. Keep returns false if no row is
// necessary, because the chat already shows last.
//
// Before the call of Kept, the message is not sent, unless a request is already in progress. Otherwise, both this
// process and the next one could send it.
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

// overLocked reports whether the message will not be in the chat: sending failed, or it was deleted.
func (m *Message) overLocked() bool {
	return m.row.State == orchestrator.Failed || m.row.State == orchestrator.Removed
}

// forgetLocked makes collect stop skipping an early message, if the database has no row of it.
func (m *Message) forgetLocked() {
	if m.storage == early {
		m.all.drop(m.spec.Key)
	}
}

// Kept must be called after Keep has returned a row. The parameter stored is true if the caller has stored the row.
// Kept makes the chat show the current content.
func (m *Message) Kept(stored bool) {
	m.mu.Lock()
	switch {
	case m.storage == early:
	case !stored:
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

// release makes collect stop skipping an early message, if its row has nothing left to send.
func (s *Messages) release(m *Message) {
	m.mu.Lock()
	over := m.row.Content == nil && m.storage.upToDate()
	m.mu.Unlock()
	if over {
		s.drop(m.spec.Key)
	}
}
