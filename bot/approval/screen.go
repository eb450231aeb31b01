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

// Service decides. orchestrator.AskDesk says what its methods do, except for Status.
type Service interface {
	Decide(ctx context.Context, id orchestrator.ApprovalID, nonce string, by orchestrator.Press, v orchestrator.Verdict) (orchestrator.Approval, error)
	Approval(ctx context.Context, id orchestrator.ApprovalID, in orchestrator.ConversationID) (orchestrator.Approval, error)
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
}

// Pins pins messages in chats, without a sound. *tgapi.Client is one.
type Pins interface {
	Pin(ctx context.Context, chat int64, message int) error
	Unpin(ctx context.Context, chat int64, message int) error
}

// Options are what a Screen is made of. Outbox, Pins and Quiet may be nil.
type Options struct {
	Messages *message.Messages
	Outbox   *outbox.Outbox          // Pins goes through it
	Pins     Pins                    // nil: nothing is pinned
	Quiet    func(at time.Time) bool // reminders make no sound then; nil: never
	Journal  orchestrator.CardStore
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
}

// Screen shows approvals and questions: each has a message, which the screen edits as its approval changes and which loses
// its buttons with the decision. It sends nothing before Attach. Safe for concurrent use.
type Screen struct {
	o Options

	mu      sync.Mutex
	service Service // nil before Attach
	entries map[orchestrator.ApprovalID]*entry
	over    []*entry                         // those that are over and shown, the oldest first
	names   map[orchestrator.PersonID]string // of users who pressed a button
}

// New makes a Screen.
func New(o Options) *Screen {
	return &Screen{o: o, entries: make(map[orchestrator.ApprovalID]*entry), names: make(map[orchestrator.PersonID]string)}
}

func (s *Screen) view(a orchestrator.Approval) view { return view{a, s.o.Lang.Of(a.Conversation.Chat)} }

// Attach gives the screen its service and begins to send. Call it once, before Press and Reply.
func (s *Screen) Attach(service Service) {
	s.mu.Lock()
	s.service = service
	entries := slices.Collect(maps.Values(s.entries))
	s.mu.Unlock()
	for _, e := range entries {
		s.push(e)
	}
}

// Show shows an approval, or its new state. It does not wait for the network.
func (s *Screen) Show(a orchestrator.Approval) {
	s.mu.Lock()
	e := s.entryOfLocked(a)
	e.approval = a
	s.scheduleLocked(e)
	s.mu.Unlock()
	s.push(e)
}

// Moved has the open approvals of a group follow it to its new id: Telegram refuses the edit of a message of the old one, and names the new.
func (s *Screen) Moved(chat int64) {
	s.mu.Lock()
	entries := slices.Collect(maps.Values(s.entries))
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.conv.Chat != chat || !e.open() })
	s.mu.Unlock()
	for _, e := range entries {
		e.message.Believe("") // what it shows, nobody sees any more
		s.push(e)
	}
}

// Hint says that an agent of a conversation waits for its user; empty if none does. A message is no answer to that agent
// unless it replies to the question, the user pressed a button that asks for words, or onlyQuestion finds that it is one.
func (s *Screen) Hint(in orchestrator.ConversationID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.conv == in && e.open() {
			return s.o.Lang.Of(in.Chat).Text("approval.waits")
		}
	}
	return ""
}

// home is the conversation of an approval, if its message is in in. That is another one if the topic is gone or the group has moved. The
// message is not compared: a press may come before Telegram has answered which one it sent.
func (s *Screen) home(ctx context.Context, in orchestrator.ConversationID, of orchestrator.ApprovalID) orchestrator.ConversationID {
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

// namesKept limits the names that the screen remembers.
const namesKept = 1024

// remember keeps the name of a user who pressed a button, for the line about the decision.
func (s *Screen) remember(p orchestrator.PersonID, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= namesKept {
		clear(s.names)
	}
	s.names[p] = name
}

// nameOfLocked is the name of the user who decided, in a group only.
func (s *Screen) nameOfLocked(a orchestrator.Approval) string {
	if a.By == 0 || !outbox.ChatOf(a.Conversation.Chat).Group {
		return ""
	}
	return s.names[a.By]
}
