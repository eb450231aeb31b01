package approval

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/lang"
	"ductor/orchestrator"
)

// Service knows the approvals and carries out decisions.
type Service interface {
	orchestrator.Approvals
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
}

// Pins pins messages without notifying users. *tgapi.Client implements it.
type Pins interface {
	Pin(ctx context.Context, chat int64, message int) error
	Unpin(ctx context.Context, chat int64, message int) error
}

type Options struct {
	Messages *message.Messages
	Outbox   *outbox.Outbox          // makes the requests of Pins; not used if Pins is nil
	Pins     Pins                    // pins the messages of open approvals; nil: they are not pinned
	Quiet    func(at time.Time) bool // reports whether reminders are silent at that time; nil: they are never silent
	Journal  orchestrator.CardStore
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
}

// Screen shows each approval and each question in a separate message, and handles the answers of users. It sends
// nothing before Attach. It is safe for concurrent use.
type Screen struct {
	o Options

	mu      sync.Mutex
	service Service // nil until Attach
	entries map[orchestrator.ApprovalID]*entry
	closed  []*entry                         // closed approvals that are still in entries, oldest first
	names   map[orchestrator.PersonID]string // names of users who pressed a button
}

func New(o Options) *Screen {
	return &Screen{
		o: o, entries: make(map[orchestrator.ApprovalID]*entry), names: make(map[orchestrator.PersonID]string),
	}
}

func (s *Screen) view(a orchestrator.Approval) view { return view{a, s.o.Lang.Of(a.Conversation.Chat)} }

// Attach sets the service and starts to send messages. It must be called once, before Press and Reply.
func (s *Screen) Attach(service Service) {
	s.mu.Lock()
	s.service = service
	entries := slices.Collect(maps.Values(s.entries))
	s.mu.Unlock()
	for _, e := range entries {
		s.push(e)
	}
}

// Show shows the current state of an approval. It does not wait for the request to Telegram. If isNew is true, no
// earlier process has shown the approval, so Show reads nothing from the database.
func (s *Screen) Show(a orchestrator.Approval, isNew bool) {
	s.mu.Lock()
	e := s.entryOfLocked(a, isNew)
	e.approval = a
	s.scheduleLocked(e)
	s.mu.Unlock()
	s.push(e)
}

// MoveGroup is called with the old chat ID of a group that got a new one. MoveGroup edits the messages of open
// approvals in the old chat. Telegram rejects these edits and returns the new ID. The messages are then sent to the new
// chat.
func (s *Screen) MoveGroup(oldID int64) {
	s.mu.Lock()
	entries := slices.Collect(maps.Values(s.entries))
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.conv.Chat != oldID || !e.open() })
	s.mu.Unlock()
	for _, e := range entries {
		e.message.Invalidate()
		s.push(e)
	}
}

// WaitingHint returns a text for a user who sends a prompt while an agent waits for a decision. The text explains that
// the prompt does not count as the decision. WaitingHint returns "" if no approval is open in the conversation.
func (s *Screen) WaitingHint(in orchestrator.ConversationID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.conv == in && e.open() {
			return s.o.Lang.Of(in.Chat).Text("approval.waits")
		}
	}
	return ""
}

// find returns an approval whose message is in the given conversation. This conversation differs from the approval's
// own conversation if the topic was deleted or the group has a new ID.
func (s *Screen) find(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.ApprovalID) (orchestrator.Approval, error) {
	a, err := s.service.Approval(ctx, id, in)
	if !errors.Is(err, orchestrator.ErrElsewhere) {
		return a, err
	}
	m := s.o.Messages.Open(message.Spec{Key: keyPrefix + string(id), To: a.Conversation})
	if failed := m.Load(ctx); failed != nil {
		s.o.Log.Warn("look up where an approval is shown", "approval", id, "err", failed)
	}
	if m.To() == in {
		return a, nil
	}
	return a, err
}

const namesKept = 1024

// remember stores the name of a user who pressed a button. After the decision, the approval's message shows the name.
func (s *Screen) remember(p orchestrator.PersonID, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= namesKept {
		clear(s.names)
	}
	s.names[p] = name
}

// nameOfLocked returns the name of the user who decided. It returns "" in a private chat, where the name is not shown.
func (s *Screen) nameOfLocked(a orchestrator.Approval) string {
	if a.By == 0 || !outbox.ChatOf(a.Conversation.Chat).Group {
		return ""
	}
	return s.names[a.By]
}
