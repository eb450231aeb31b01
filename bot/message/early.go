package message

import (
	"ductor/bot/outbox"
	"ductor/orchestrator"
)

// Early sends a message before other messages of the chat, and before it is stored. Later, Keep and Kept store it
// together with the event that caused it.
func (s *Messages) Early(spec Spec) *Message {
	m := s.Open(spec)
	m.storage = early
	s.hold(spec.Key)
	m.Update(outbox.Urgent)
	return m
}

// Announce passes the final text of an early message to Messages.Noticed.
func (m *Message) Announce(last Content) { m.all.notice(m.spec.To, m.spec.Key, last) }

// Keep returns a row with the content last, which the caller must store. If ductor crashes before the message shows
// that content, the next process makes it do so. Keep returns false if nothing needs to be stored, because the message
// already shows last.
//
// If Keep returns a row, the caller must call Kept afterwards. In between, the message is not sent, unless that is
// already in progress. Otherwise, both this process and the next could send it.
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

// forgetLocked makes Run treat the message like any other, if no row of it exists.
func (m *Message) forgetLocked() {
	if m.storage == early {
		m.all.drop(m.spec.Key)
	}
}

// Kept must be called after Keep. stored is true if the row was stored. Kept makes the chat show the current content.
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

// release makes Run treat an early message like any other when its row has nothing left to send.
func (s *Messages) release(m *Message) {
	m.mu.Lock()
	over := m.row.Content == nil && (m.storage == kept || m.storage == saved)
	m.mu.Unlock()
	if over {
		s.drop(m.spec.Key)
	}
}
