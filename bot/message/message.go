package message

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Message is one message of a chat. Its state says what is known of it: it waits (Pending), is being sent (Sending), is in
// the chat (Sent), may be there (Unknown), was refused for good (Failed), or is gone (Removed). The store has the state
// before a call that sends and after every call, so that the next process continues with the message that exists.
// A message whose sending has an unknown outcome is not sent again; an edit is made again.
//
// A producer that gave Spec.Content calls Update. Any other decides itself when to call, with Begin and Do: one goroutine
// at a time. Safe for concurrent use.
type Message struct {
	all  *Messages
	spec Spec
	log  *slog.Logger

	writing sync.Mutex // held during a write, so that the store has the newest state
	mu      sync.Mutex
	calls   calls
	landed  func(err error) // is told the end of a call instead of Spec.Called, and makes it again if it failed; may be nil
	row     orchestrator.Message
	storage storage
	shown   string // the fingerprint of what the chat shows; empty if unknown
	tried   fallbacks
	trouble trouble
}

// trouble is what went wrong with a message.
type trouble struct {
	refusal tgapi.FaultKind // why Telegram refused what it was to show last
	said    string          // what stands in the place of files that Telegram refused
	lost    []byte          // content that may have arrived before ductor ended
}

// storage says what the store has of a message.
type storage int

const (
	unread    storage = iota // not known
	kept                     // its state
	behind                   // an earlier state
	early                    // nothing: it leaves before it is stored
	putting                  // it is being stored beside what caused it: it does not begin to leave
	overtaken                // likewise, and its state has changed since
)

// fallbacks is a set of other ways to show a message, which Telegram's answers made necessary.
type fallbacks uint8

const (
	inMainTopic       fallbacks = 1 << iota // its topic is gone, and the message says so
	withoutFormatting                       // Telegram refused the formatting
	sentTwice                               // a user deleted the message
	undeletable                             // Telegram does not delete it
	asDocuments                             // Telegram refused the pictures
	asText                                  // Telegram refused the files, and the message says so
	notRich                                 // Telegram refused the rich content
	neverRich                               // likewise, since it knows none
)

// Step is a call for a message.
type Step int

// The steps.
const (
	None Step = iota
	Send
	Edit
	Delete
	Record // no call: the store does not have the state
)

// State is what is known of the message. It is Pending before the message is loaded.
func (m *Message) State() orchestrator.SendState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.State
}

// ID is Telegram's number of the message; 0 if there is none.
func (m *Message) ID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.ID
}

// Mark is what Content.Mark was when the message was sent last; orchestrator.EndShown if it shows its end.
func (m *Message) Mark() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Mark
}

// To is the conversation that has the message: it moves to the main topic if its own is gone.
func (m *Message) To() orchestrator.ConversationID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Conversation
}

// Refusal says why Telegram refused for good what the message was to show last; NoFault if it did not.
func (m *Message) Refusal() tgapi.FaultKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble.refusal
}

// Richness says what Telegram makes of rich messages.
type Richness int

// What Telegram makes of them.
const (
	TakesRich   Richness = iota // as far as is known
	RefusesRich                 // that of this message
	KnowsNoRich                 // it is too old for them
)

// Richness says what became of a rich content of the message.
func (m *Message) Richness() Richness {
	switch {
	case m.has(neverRich):
		return KnowsNoRich
	case m.has(notRich):
		return RefusesRich
	}
	return TakesRich
}

// Shown is the fingerprint of what the chat shows; empty if that is unknown. Believe undoes it.
func (m *Message) Shown() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown
}

// Believe takes a fingerprint for that of what the chat shows; an empty one has the next step be an edit.
func (m *Message) Believe(fingerprint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = fingerprint
}

// Trust takes what the message is to show for what the chat shows.
func (m *Message) Trust(want Content) { m.Believe(want.fingerprint()) }

// Load reads what the previous process left of the message, once.
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
	m.takeUp(row)
	return nil
}

// takeUp continues with what the store has; a row without a state says that the store has nothing.
func (m *Message) takeUp(row orchestrator.Message) {
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
		if row.Content != nil {
			m.log.Warn("a message was being sent when ductor ended; it is not sent again, since it may have arrived")
			m.storage, m.trouble.lost = behind, row.Content
		}
		row.State, row.Content = orchestrator.Unknown, nil
	case orchestrator.Failed, orchestrator.Removed:
		if row.Content != nil { // of a version that stored what it could not show
			m.storage, row.Content = behind, nil
		}
	}
	m.row = row
}

// Adopt takes a message of the chat for this one.
func (m *Message) Adopt(ctx context.Context, id int) error {
	m.Believe("")
	return m.save(ctx, orchestrator.Sent, id)
}

// Reset forgets the message in the chat, which stays there: the next step sends another.
func (m *Message) Reset(ctx context.Context, to orchestrator.SendState) error {
	m.mu.Lock()
	m.shown, m.tried = "", m.tried&^sentTwice
	m.mu.Unlock()
	return m.save(ctx, to, 0)
}

// Next is the step that has the chat show want.
func (m *Message) Next(want Content) Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nextLocked(want)
}

func (m *Message) nextLocked(want Content) Step {
	goes := want.Life == Goes && (m.tried&undeletable == 0 || want.Text.Text == "")
	switch {
	case m.row.State == orchestrator.Pending && m.storage == putting:
	case m.row.State == orchestrator.Pending && want.Life != Goes && want.Life != OnlyEdits:
		return Send
	case m.row.State == orchestrator.Sent && goes:
		return Delete
	case m.row.State == orchestrator.Sent && m.shown != want.fingerprint():
		return Edit
	case m.storage == behind, m.row.State == orchestrator.Sent && m.row.Content != nil && want.Life != Changes:
		return Record
	}
	return None
}

// Begin is Next for a caller that makes the step now. Until Do returns it is unknown what the chat shows.
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

// showed records what the chat shows; it says whether the store said that this was owed.
func (m *Message) showed(want Content) bool {
	m.Trust(want)
	return m.settle(want)
}

// settle records that nothing is owed of the message but what it changes to.
func (m *Message) settle(want Content) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	owed := m.row.Content != nil && want.Life != Changes
	if owed {
		m.row.Content = nil
		if m.storage == kept {
			m.storage = behind
		}
	}
	return owed
}

// save records the state of the message, here and in the store.
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
