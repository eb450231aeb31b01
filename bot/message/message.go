package message

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Message is one message of a chat. It has one of these states:
//   - Pending: it waits
//   - Sending: it is being sent
//   - Sent: it is in the chat
//   - Unknown: it may be in the chat
//   - Failed: it was rejected permanently
//   - Removed: it is gone
//
// The state is stored before each call that sends and after every call, so that the next process continues with the
// existing message. If the outcome of sending is unknown, the message is not sent again. An edit is repeated.
//
// If Spec.Content is set, the producer of the message calls Update. Otherwise the producer itself decides when to make
// calls, with Begin and Do, from one goroutine at a time. Safe for concurrent use.
type Message struct {
	all  *Messages
	spec Spec
	log  *slog.Logger

	writing   sync.Mutex // held during a write, so that the store gets the newest state
	mu        sync.Mutex
	calls     calls
	landed    func(err error) // replaces Spec.Called: gets the result of a call and repeats a failed one; may be nil
	row       orchestrator.Message
	storage   storage
	shown     string // fingerprint of the content that the chat shows; empty if unknown
	fallbacks fallbacks
	trouble   trouble
}

// trouble records the problems of a message.
type trouble struct {
	refusal     tgapi.FaultKind // why Telegram rejected the last content
	replacement string          // text that replaces files that Telegram rejected
	lost        []byte          // content that may have arrived before ductor stopped
	repeats     int             // how often it was sent again, see Repeats
}

// storage is the relation of the stored row to the message.
type storage int

const (
	unread    storage = iota // not read yet
	kept                     // the store has the current state
	behind                   // the store has an older state
	early                    // not stored: the message is sent first
	putting                  // being stored together with its cause; sending must wait
	overtaken                // like putting, but the state has changed since
)

// fallbacks is a set of other ways to show a message, chosen because of Telegram's answers.
type fallbacks uint8

const (
	inMainTopic       fallbacks = 1 << iota // the topic is gone; the message has a note about it
	withoutFormatting                       // Telegram rejected the formatting
	sentTwice                               // a user deleted the message
	undeletable                             // Telegram refuses to delete it
	asDocuments                             // Telegram rejected the pictures
	asText                                  // Telegram rejected the files; the message shows a text about it
	notRich                                 // Telegram rejected the rich content
	neverRich                               // Telegram does not know rich content at all
)

// Step is the next call for a message.
type Step int

// Steps of a message.
const (
	None Step = iota
	Send
	Edit
	Delete
	Record // no call, but the state must be stored
)

// State returns the state of the message. It is Pending until the message is loaded.
func (m *Message) State() orchestrator.SendState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.State
}

// ID returns Telegram's number of the message, or 0 if there is none.
func (m *Message) ID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.ID
}

// Mark returns Content.Mark of the content that was sent last, or orchestrator.EndShown if the message shows its end.
func (m *Message) Mark() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Mark
}

// To returns the message's conversation. A message moves to the main topic if its own topic is gone.
func (m *Message) To() orchestrator.ConversationID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Conversation
}

// Refusal returns the reason why Telegram rejected the last content for good, or NoFault.
func (m *Message) Refusal() tgapi.FaultKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble.refusal
}

// Richness is Telegram's answer to rich messages.
type Richness int

// Values of Richness.
const (
	TakesRich   Richness = iota // accepted, as far as known
	RefusesRich                 // rejected for this message
	KnowsNoRich                 // this Telegram server is too old for any rich message
)

// Richness returns how Telegram answered to the message's rich content.
func (m *Message) Richness() Richness {
	switch {
	case m.has(neverRich):
		return KnowsNoRich
	case m.has(notRich):
		return RefusesRich
	}
	return TakesRich
}

// Shown returns the fingerprint of the content that the chat shows. It is empty if that is unknown. AssumeFingerprint
// sets it.
func (m *Message) Shown() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown
}

// AssumeFingerprint records a fingerprint as the one the chat shows. An empty fingerprint forces an edit as the next step.
func (m *Message) AssumeFingerprint(fingerprint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = fingerprint
}

// AssumeShown records want as the content that the chat shows.
func (m *Message) AssumeShown(want Content) { m.AssumeFingerprint(want.fingerprint()) }

// Load reads the state that the previous process stored. Further calls do nothing.
func (m *Message) Load(ctx context.Context) error {
	m.mu.Lock()
	known := m.storage != unread
	m.mu.Unlock()
	if known {
		return nil
	}
	row, err := m.all.store.FindMessage(ctx, m.spec.Key)
	if err != nil {
		return fmt.Errorf("load a message: %w", err)
	}
	m.restore(row)
	return nil
}

// restore continues with a stored row. A row without a state means that the store has nothing.
func (m *Message) restore(row orchestrator.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.storage != unread {
		return
	}
	m.storage = kept
	if row.Conversation == (orchestrator.ConversationID{}) {
		row.Conversation = m.spec.To
	}
	switch row.State {
	case "":
		return
	case orchestrator.Sending, orchestrator.Unknown:
		if c, err := decode(row.Content); err == nil && c.Lifecycle == ResendIfUnknown {
			row.State = orchestrator.Pending
			break
		}
		if row.Content != nil {
			m.log.Warn("a message was being sent when ductor ended; it is not sent again, since it may have arrived")
			m.storage, m.trouble.lost = behind, row.Content
		}
		row.State, row.Content = orchestrator.Unknown, nil
	case orchestrator.Failed, orchestrator.Removed:
		if row.Content != nil { // stored by an old version that could not show it
			m.storage, row.Content = behind, nil
		}
	}
	m.row = row
}

// Adopt makes the message represent an existing message of the chat.
func (m *Message) Adopt(ctx context.Context, id int) error {
	m.AssumeFingerprint("")
	return m.save(ctx, orchestrator.Sent, id)
}

// Reset detaches from the message in the chat, which stays there. The next step sends a new one.
func (m *Message) Reset(ctx context.Context, to orchestrator.SendState) error {
	m.mu.Lock()
	m.shown, m.fallbacks = "", m.fallbacks&^sentTwice
	m.mu.Unlock()
	return m.save(ctx, to, 0)
}

// Next returns the step that makes the chat show want.
func (m *Message) Next(want Content) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nextLocked(want)
}

func (m *Message) nextLocked(want Content) Step {
	goes := want.Lifecycle == DeleteWhenDone && (m.fallbacks&undeletable == 0 || want.Text.Text == "")
	unknown := m.row.State == orchestrator.Unknown
	switch {
	case (m.row.State == orchestrator.Pending || unknown) && m.storage == putting:
	case m.row.State == orchestrator.Pending && want.Lifecycle != DeleteWhenDone && want.Lifecycle != EditOnly:
		return Send
	case unknown && want.Lifecycle == ResendIfUnknown && m.trouble.repeats == 0:
		// Ductor ended while the message was being sent.
		return Send
	case unknown && m.row.Content != nil && want.Lifecycle == Keep && m.shown != want.fingerprint():
		// Only progress may have arrived. The final text must still be sent, and an edit cannot show it.
		return Send
	case unknown && m.row.Content != nil && want.Lifecycle != Growing:
		return Record
	case m.row.State == orchestrator.Sent && goes:
		return Delete
	case m.row.State == orchestrator.Sent && m.shown != want.fingerprint():
		return Edit
	case m.storage == behind, m.row.State == orchestrator.Sent && m.row.Content != nil && want.Lifecycle != Growing:
		return Record
	}
	return None
}

// Begin returns the next step, like Next, for a caller that makes it now. Until Do returns, the content that the chat
// shows is unknown.
func (m *Message) Begin(want Content) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	step := m.nextLocked(want)
	switch step {
	case Send:
		m.row.State, m.row.Mark, m.trouble.refusal = orchestrator.Sending, want.Mark, tgapi.NoFault
	case Edit, Delete:
		m.shown, m.trouble.refusal = "", tgapi.NoFault
	}
	return step
}

// showed records that the chat shows want. It reports whether the stored row still owed content.
func (m *Message) showed(want Content) bool {
	m.AssumeShown(want)
	return m.settle(want)
}

// settle records that the message owes nothing, except changes yet to come. It reports whether the store had content
// owed.
func (m *Message) settle(want Content) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	owed := m.row.Content != nil && want.Lifecycle != Growing
	if owed {
		m.row.Content = nil
		if m.storage == kept {
			m.storage = behind
		}
	}
	return owed
}

// save records the state of the message in memory and in the store.
func (m *Message) save(ctx context.Context, state orchestrator.SendState, id int) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.Lock()
	m.row.State, m.row.ID = state, id
	if state == orchestrator.Failed || state == orchestrator.Removed {
		m.row.Content = nil
	}
	switch m.storage {
	case putting:
		m.storage = overtaken
	case unread, kept, behind:
		m.storage = behind
	}
	row, here := m.row, m.storage != behind
	m.mu.Unlock()
	if here {
		return nil
	}
	if err := m.all.store.SaveMessage(ctx, row); err != nil {
		return fmt.Errorf("record a message: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storage = kept
	return nil
}
