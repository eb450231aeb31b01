package message

import (
	"ductor/bot/outbox"
	"ductor/orchestrator"
)

// Early creates a message that is sent immediately, before other messages of its chat and before it is stored. Keep
// and Kept store it later, together with the event that caused it.
func (s *Messages) Early(spec Spec) *Message {
	m := s.Open(spec)
	m.storage = early
	s.hold(spec.Key)
	m.Update(outbox.Urgent)
	return m
}

// Announce reports the final text of an early message to Messages.Noticed.
func (m *Message) Announce(last Content) { m.all.notice(m.spec.To, m.spec.Key, last) }

// Keep returns the row to store for an early message. If ductor restarts before the message shows last, the next
// process makes it show last. Keep returns false if the message already shows last, or may show it.
//
// After every Keep that returned a row, the caller must call Kept. Until then, the message is not sent unless sending
// has already begun. So only one process sends it: this one or the next.
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

// overLocked reports whether sending has ended without a visible message: it failed, or the message was removed.
func (m *Message) overLocked() bool {
	return m.row.State == orchestrator.Failed || m.row.State == orchestrator.Removed
}

// forgetLocked ends the priority of a message that is not stored.
func (m *Message) forgetLocked() {
	if m.storage == early {
		m.all.drop(m.spec.Key)
	}
}

// Kept reports whether the row that Keep returned was stored. It then updates the chat to the current content.
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

// release removes an early message from owed.held once its stored row has no content left to send.
func (s *Messages) release(m *Message) {
	m.mu.Lock()
	over := m.row.Content == nil && m.storage == kept
	m.mu.Unlock()
	if over {
		s.drop(m.spec.Key)
	}
}
