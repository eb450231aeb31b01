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
//   - Pending: not sent yet
//   - Sending: being sent
//   - Sent: in the chat
//   - Unknown: perhaps in the chat
//   - Failed: rejected permanently
//   - Removed: deleted
//
// The state is stored before each call that sends, and after every call, so that the next process continues with the
// existing message. If the outcome of sending is unknown, the message is not sent again. An edit is repeated.
//
// If Spec.Content is set, the producer of the message calls Update. Otherwise the producer calls Begin and Do itself,
// from one goroutine at a time. Safe for concurrent use.
type Message struct {
	all  *Messages
	spec Spec
	log  *slog.Logger

	writing   sync.Mutex // held during a write, so that an older state never replaces a newer one
	mu        sync.Mutex
	calls     calls
	landed    func(err error) // handles and repeats calls instead of Spec.Called; may be nil
	row       orchestrator.Message
	storage   storage
	shown     string // fingerprint of the content that the chat shows; "" if unknown, or stale
	fallbacks fallbacks
	trouble   trouble
}

// trouble records the problems of a message.
type trouble struct {
	refusal     tgapi.FaultKind // why Telegram rejected the last content
	replacement string          // text instead of the files that Telegram rejected
	lost        []byte          // content that may have arrived before ductor died
	repeats     int             // number of times it was sent again; see maxRepeats
}

// storage describes whether the stored row is up to date.
type storage int

const (
	unread    storage = iota // not read yet
	kept                     // the store contains the current state
	behind                   // the store contains an older state
	early                    // not stored, because the message is sent first
	putting                  // being stored together with the event that caused it; sending must wait
	overtaken                // like putting, but the state has changed since
)

// fallbacks is a set of other ways to show a message, chosen after Telegram rejected a call.
type fallbacks uint8

const (
	inMainTopic       fallbacks = 1 << iota // the topic is gone, so the message mentions that
	withoutFormatting                       // Telegram rejected the formatting
	sentTwice                               // a user deleted the message, so it was sent again
	undeletable                             // Telegram does not delete it
	asDocuments                             // Telegram rejected the pictures
	asText                                  // Telegram rejected the files, so a text replaces them
	notRich                                 // Telegram rejected the rich content
	neverRich                               // the server does not support rich content
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

// ID returns the id of the message in the chat, or 0 if it has none.
func (m *Message) ID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.ID
}

// Mark returns Content.Mark of the last sent content, or orchestrator.EndShown if the message shows its final
// content.
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

// Refusal returns why Telegram permanently rejected the last content, or NoFault.
func (m *Message) Refusal() tgapi.FaultKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble.refusal
}

// Richness describes whether Telegram accepts rich content.
type Richness int

// Values of Richness.
const (
	TakesRich   Richness = iota // not rejected so far
	RefusesRich                 // rejected for this message
	KnowsNoRich                 // the server is too old for rich messages
)

// Richness returns whether Telegram accepts the message's rich content.
func (m *Message) Richness() Richness {
	switch {
	case m.has(neverRich):
		return KnowsNoRich
	case m.has(notRich):
		return RefusesRich
	}
	return TakesRich
}

// stale is the fingerprint of a message that must be edited once more. No content has it.
const stale = "stale"

// Shown returns the fingerprint of the content that the chat shows, or "" if that is unknown.
func (m *Message) Shown() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown == stale {
		return ""
	}
	return m.shown
}

// Invalidate forces an edit in the next step, also if the chat already shows the wanted content, and also during a
// call that shows it.
func (m *Message) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = stale
}

// AssumeFingerprint records fingerprint as the content that the chat shows. An empty fingerprint forces an edit in
// the next step.
func (m *Message) AssumeFingerprint(fingerprint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = fingerprint
}

// AssumeShown records want as the content that the chat shows.
func (m *Message) AssumeShown(want Content) { m.AssumeFingerprint(want.fingerprint()) }

// Load reads the state that the previous process stored. Only the first call does so.
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

// restore continues with a stored row. If the row has no state, nothing is stored.
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
		if row.Content != nil { // an old version stored it and could not show it
			m.storage, row.Content = behind, nil
		}
	}
	m.row = row
}

// Adopt binds the message to an existing message of the chat.
func (m *Message) Adopt(ctx context.Context, id int) error {
	m.AssumeFingerprint("")
	return m.save(ctx, orchestrator.Sent, id)
}

// Reset detaches the Message from the message in the chat, which stays there. The next step sends a new message.
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
		// ductor ended while the message was being sent.
		return Send
	case unknown && m.row.Content != nil && want.Lifecycle == Keep && m.shown != want.fingerprint():
		// The chat may show progress, but not the final text. Send the text, because an edit needs the id of the
		// message.
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

// Begin returns the next step, like Next, and marks it as being made. Until Do returns, the shown content counts as
// unknown.
func (m *Message) Begin(want Content) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	step := m.nextLocked(want)
	switch step {
	case Send:
		m.shown = ""
		m.row.State, m.row.Mark, m.trouble.refusal = orchestrator.Sending, want.Mark, tgapi.NoFault
	case Edit, Delete:
		m.shown, m.trouble.refusal = "", tgapi.NoFault
	}
	return step
}

// showed records that the chat shows want. It reports whether the stored row still contained content to send.
func (m *Message) showed(want Content) bool {
	m.mu.Lock()
	if m.shown != stale {
		m.shown = want.fingerprint()
	}
	m.mu.Unlock()
	return m.settle(want)
}

// settle records that nothing of want is left to send. It reports whether the store still contained content to send.
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
