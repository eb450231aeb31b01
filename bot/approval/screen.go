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

// Service provides approvals and carries out decisions.
type Service interface {
	orchestrator.Approvals
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
}

// Pins pins messages in chats without a sound. *tgapi.Client implements it.
type Pins interface {
	Pin(ctx context.Context, chat int64, message int) error
	Unpin(ctx context.Context, chat int64, message int) error
}

// Options configures a Screen. Outbox, Pins and Quiet may be nil.
type Options struct {
	Messages *message.Messages
	Outbox   *outbox.Outbox          // makes the calls of Pins
	Pins     Pins                    // nil: pin nothing
	Quiet    func(at time.Time) bool // reports whether reminders are silent; nil: never
	Journal  orchestrator.CardStore
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
}

// Screen shows approvals and questions, each in its own message. It edits the message when the approval changes, and
// removes the buttons after the decision. It sends nothing before Attach. Safe for concurrent use.
type Screen struct {
	o Options

	mu      sync.Mutex
	service Service // nil before Attach
	entries map[orchestrator.ApprovalID]*entry
	over    []*entry                         // finished approvals whose end the chat shows, oldest first
	names   map[orchestrator.PersonID]string // names of users who pressed a button
}

// New returns a Screen.
func New(o Options) *Screen {
	return &Screen{
		o: o, entries: make(map[orchestrator.ApprovalID]*entry), names: make(map[orchestrator.PersonID]string),
	}
}

func (s *Screen) view(a orchestrator.Approval) view { return view{a, s.o.Lang.Of(a.Conversation.Chat)} }

// Attach sets the service and starts sending. Call it once, before Press and Reply.
func (s *Screen) Attach(service Service) {
	s.mu.Lock()
	s.service = service
	entries := slices.Collect(maps.Values(s.entries))
	s.mu.Unlock()
	for _, e := range entries {
		s.push(e)
	}
}

// Show shows an approval or its new state. It does not wait for the network.
func (s *Screen) Show(a orchestrator.Approval) {
	s.mu.Lock()
	e := s.entryOfLocked(a)
	e.approval = a
	s.scheduleLocked(e)
	s.mu.Unlock()
	s.push(e)
}

// MoveGroup moves the open approvals of a group whose id has changed. chat is the old id. MoveGroup edits the
// messages in the old group. Telegram rejects the edits with an error that contains the new id, and each message then
// moves to the new group.
func (s *Screen) MoveGroup(chat int64) {
	s.mu.Lock()
	entries := slices.Collect(maps.Values(s.entries))
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.conv.Chat != chat || !e.open() })
	s.mu.Unlock()
	for _, e := range entries {
		e.message.Invalidate()
		s.push(e)
	}
}

// WaitingHint returns the note that an agent waits for its user, or "" if no agent does. A message answers the agent
// only if it replies to the question, or if the user pressed a button that asks for words. It also answers the
// question that onlyQuestion returns.
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

// home returns the conversation to which an approval belongs. in is the conversation that shows the approval's
// message. The two differ if the topic is gone or the group has moved. home does not compare message ids, because a
// press may arrive before Telegram has answered the call that sent the message.
func (s *Screen) home(ctx context.Context, in orchestrator.ConversationID,
	of orchestrator.ApprovalID) orchestrator.ConversationID {
	a, err := s.service.Approval(ctx, of, in)
	if !errors.Is(err, orchestrator.ErrElsewhere) {
		return in
	}
	m := s.o.Messages.Open(message.Spec{Key: keyPrefix + string(of), To: a.Conversation})
	if err := m.Load(ctx); err != nil {
		s.o.Log.Warn("look up where an approval is shown", "approval", of, "err", err)
	}
	if m.To() == in {
		return a.Conversation
	}
	return in
}

// namesKept limits the number of remembered names.
const namesKept = 1024

// remember stores the name of a user who pressed a button, for the description of the decision.
func (s *Screen) remember(p orchestrator.PersonID, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= namesKept {
		clear(s.names)
	}
	s.names[p] = name
}

// nameOfLocked returns the name of the user who decided if the chat is a group, and "" otherwise.
func (s *Screen) nameOfLocked(a orchestrator.Approval) string {
	if a.By == 0 || !outbox.ChatOf(a.Conversation.Chat).Group {
		return ""
	}
	return s.names[a.By]
}
