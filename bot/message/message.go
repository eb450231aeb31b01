package message

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Message is one message in a chat. Its state is one of:
//   - Pending: not sent yet
//   - Sending: a request to send it is in progress
//   - Sent: in the chat
//   - Unknown: Telegram did not confirm it, so it may be in the chat
//   - Failed: Telegram rejected it
//   - Removed: deleted from the chat
//
// The state is stored before each request that sends the message, and after each request. After a crash, the next
// process continues with the stored state. A message whose state is Unknown is not sent again.
//
// A Message can be used in two ways. If Spec.Content is set, Update makes all requests. Otherwise the caller calls
// Begin and Do, from one goroutine at a time. All other methods are safe for concurrent use.
type Message struct {
	all  *Messages
	spec Spec
	log  *slog.Logger

	writing sync.Mutex // held while writing to the database, so that an old state never replaces a newer one
	mu      sync.Mutex
	calls   calls
	// landed is set by Messages.collect. It is called when a request has ended, in place of Spec.Called. After an
	// error, landed is responsible for the log entry and the retry.
	landed  func(err error)
	row     orchestrator.Message
	storage storage
	// shown is the fingerprint of the content in the chat. It is "" if ductor does not know this content, and the
	// constant stale if an edit is necessary in any case.
	shown     string
	fallbacks fallbacks
	trouble   trouble
}

type trouble struct {
	refusal     tgapi.FaultKind // why Telegram permanently rejected the last content; NoFault if it did not
	replacement string          // text to send in place of files that Telegram rejected
	lost        []byte          // content that the previous process was sending when it crashed
	repeats     int             // number of times that the message was sent again; at most maxRepeats
}

// storage is the state of the message's row in the database.
type storage int

const (
	unread    storage = iota // the row was not read yet
	kept                     // the row is up to date
	saved                    // the row is up to date, but may be lost if the process is killed; see commit
	behind                   // the row is out of date
	early                    // no row exists yet; see Messages.Early
	putting                  // the caller of Keep is storing the row; do not send the message until Kept
	overtaken                // like putting, but the message has changed, so the row will be out of date
)

// upToDate reports whether the stored row has the current state.
func (s storage) upToDate() bool { return s == kept || s == saved }

// fallbacks records how ductor must change a message before sending it again, because Telegram rejected the message or
// a user deleted it.
type fallbacks uint8

const (
	inMainTopic fallbacks = 1 << iota // send the message to the main topic, with a note that its topic was deleted
	withoutFormatting
	sentTwice   // the message was sent again after a user deleted it; do not send it a third time
	undeletable // show the text of the message, because Telegram does not allow the bot to delete it
	asDocuments // send pictures as documents
	asText      // send a text instead of the files
	notRich     // send plain text instead of rich content
	neverRich   // the server does not support rich messages; notRich is set, too
)

// Step is the kind of the next request to Telegram about a message.
type Step int

// Values of Step.
const (
	None Step = iota
	Send
	Edit
	Delete
	Record // make no request, but save the state in the database
)

// State returns the state of the message, or Pending before Load.
func (m *Message) State() orchestrator.SendState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.State
}

// ID returns the ID of the message in the chat, or 0 if the message is not in the chat.
func (m *Message) ID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.ID
}

// Mark returns the Content.Mark with which the message was sent. It returns orchestrator.EndShown if the message shows
// its final content.
func (m *Message) Mark() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Mark
}

// To returns the conversation of the message. If the message's topic was deleted, this is the main topic of the chat.
func (m *Message) To() orchestrator.ConversationID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Conversation
}

// Refusal returns why Telegram permanently rejected the message, or NoFault if Telegram did not reject it.
func (m *Message) Refusal() tgapi.FaultKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble.refusal
}

// Richness describes whether Telegram accepts a message as a rich message.
type Richness int

// Values of Richness.
const (
	TakesRich   Richness = iota // Telegram has not rejected this rich message
	RefusesRich                 // Telegram rejected this rich message, but may accept others
	KnowsNoRich                 // the server does not support rich messages
)

// Richness returns whether Telegram accepts this message as a rich message.
func (m *Message) Richness() Richness {
	switch {
	case m.has(neverRich):
		return KnowsNoRich
	case m.has(notRich):
		return RefusesRich
	}
	return TakesRich
}

// stale is the value of Message.shown after Invalidate. It differs from all fingerprints, so the next step is an edit.
const stale = "stale"

// Shown returns the fingerprint of the content in the chat, or "" if the content is unknown.
func (m *Message) Shown() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown == stale {
		return ""
	}
	return m.shown
}

// Invalidate makes the next step an edit, even if the chat already shows the content, and even if a request is in
// progress.
func (m *Message) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = stale
}

// AssumeFingerprint sets the fingerprint of the content that the chat shows. An empty fingerprint means that the
// content in the chat is unknown, so that the next step is an edit.
func (m *Message) AssumeFingerprint(fingerprint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = fingerprint
}

// AssumeShown sets the content that the chat shows.
func (m *Message) AssumeShown(want Content) { m.AssumeFingerprint(want.fingerprint()) }

// Load reads the stored state from the database. Further calls do nothing.
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

// restore sets the state from a row of the database. If the database does not contain the message, the row has no
// state.
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
		if row.Content != nil { // stored by an old version of ductor
			m.storage, row.Content = behind, nil
		}
	}
	m.row = row
}

// Adopt makes m stand for a message that is already in the chat.
func (m *Message) Adopt(ctx context.Context, id int) error {
	m.AssumeFingerprint("")
	return m.save(ctx, orchestrator.Sent, id)
}

// Reset sets a new state and makes m forget the message in the chat, which stays there. If the new state is Pending,
// the next step sends a new message.
func (m *Message) Reset(ctx context.Context, state orchestrator.SendState) error {
	m.mu.Lock()
	m.shown, m.fallbacks = "", m.fallbacks&^sentTwice
	m.mu.Unlock()
	return m.save(ctx, state, 0)
}

// Next returns the step that brings the chat closer to the wanted content.
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
		// The previous process crashed while it was sending the message, so the message may be missing in the chat.
		return Send
	case unknown && m.row.Content != nil && want.Lifecycle == Keep && m.shown != want.fingerprint():
		// The message in the chat may not be final. The message cannot be edited, because its ID is unknown. So send
		// the message again.
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

// Begin returns the next step, as Next does. The caller must pass the step to Do. Until Do returns, the content in the
// chat counts as unknown.
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

// showed records that the chat shows the content in want. If it returns true, the caller must save the message; see
// settle.
func (m *Message) showed(want Content) bool {
	m.mu.Lock()
	if m.shown != stale {
		m.shown = want.fingerprint()
	}
	m.mu.Unlock()
	return m.settle(want)
}

// settle removes the content from m.row, because the chat shows want and needs no further request. It returns true if
// the row in the database still contains the content, so that the caller must save the message.
func (m *Message) settle(want Content) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	owed := m.row.Content != nil && want.Lifecycle != Growing
	if owed {
		m.row.Content = nil
		if m.storage.upToDate() {
			m.storage = behind
		}
	}
	return owed
}

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
	case unread, kept, saved, behind:
		m.storage = behind
	}
	m.mu.Unlock()
	return m.storeRow(ctx)
}

// storeRow stores the row of the message if it is out of date. The caller must hold m.writing. If the disk is full,
// ductor stores the ID of a sent message later in the background.
func (m *Message) storeRow(ctx context.Context) error {
	m.mu.Lock()
	row, late := m.row, m.storage == behind
	m.mu.Unlock()
	if !late {
		return nil
	}
	if err := m.all.store.SaveMessage(ctx, row); err != nil {
		m.all.saveLater(m, row.State, err)
		return fmt.Errorf("record a message: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storage = saved
	return nil
}
