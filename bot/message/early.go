package message

import (
	"ductor/bot/outbox"
	"ductor/orchestrator"
)

// Early makes a message that leaves at once, before anything else of its chat and before it is stored. Keep and Kept store
// it beside what caused it.
func (s *Messages) Early(spec Spec) *Message {
	m := s.Open(spec)
	m.storage = early
	s.hold(spec.Key)
	m.Update(outbox.Urgent)
	return m
}

// Keep gives an early message as it is to be stored, with what it must end up showing, should ductor be restarted before it
// does; false if it shows that. Every Keep that gives a message is followed by Kept: until then one that has not begun to
// leave waits, so that it is sent by this process or by the next.
func (m *Message) Keep(last Content) (orchestrator.Message, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.State == orchestrator.Sent && m.shown == last.fingerprint() {
		m.forgetLocked()
		return orchestrator.Message{}, false
	}
	if m.storage = putting; !m.overLocked() {
		m.row.Content = last.Encode()
	}
	return m.row, true
}

// overLocked reports whether nothing brings the message into the chat any more.
func (m *Message) overLocked() bool {
	return m.row.State == orchestrator.Failed || m.row.State == orchestrator.Removed
}

// forgetLocked lets others leave in the place of a message of which nothing is stored.
func (m *Message) forgetLocked() {
	if m.storage == early {
		m.all.drop(m.spec.Key)
	}
}

// Kept says whether the message that Keep gave, if it gave one, was stored, and has the chat show what it is to show now.
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

// release lets collect have a message that was early and owes nothing any more.
func (s *Messages) release(m *Message) {
	m.mu.Lock()
	over := m.row.Content == nil && m.storage == kept
	m.mu.Unlock()
	if over {
		s.drop(m.spec.Key)
	}
}
