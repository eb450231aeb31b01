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
	"ductor/bot/render"
	"ductor/bot/tgapi"
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
	Names    *tgapi.ChatNames // names of users; may be nil
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
	closed  []*entry // closed approvals that are still in entries, oldest first
}

func New(o Options) *Screen {
	return &Screen{o: o, entries: make(map[orchestrator.ApprovalID]*entry)}
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

// HasOpen reports whether an approval is open in the conversation.
func (s *Screen) HasOpen(in orchestrator.ConversationID) bool {
	_, open := s.openIn(in)
	return open
}

// WaitingHint returns a text for a user who sends a prompt while an agent waits for a decision. The text explains that
// the prompt does not count as the decision. It names the users who may decide if this user may not. WaitingHint
// returns "" if no approval is open in the conversation.
func (s *Screen) WaitingHint(in orchestrator.ConversationID, user orchestrator.PersonID) string {
	a, open := s.openIn(in)
	p := s.o.Lang.Of(in.Chat)
	names := s.approverNames(p, a)
	switch {
	case !open:
		return ""
	case slices.Contains(a.Approvers, user):
		return p.Text("approval.waits")
	case names == "":
		return p.Text("approval.waits-for-other")
	}
	return p.Text("approval.waits-for", names)
}

// openIn returns an open approval of the conversation, or false if there is none.
func (s *Screen) openIn(in orchestrator.ConversationID) (orchestrator.Approval, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.conv == in && e.open() {
			return e.approval, true
		}
	}
	return orchestrator.Approval{}, false
}

// notApprover returns a text for a user who may not decide the approval. The text names the users who may.
func (s *Screen) notApprover(p lang.Printer, a orchestrator.Approval) string {
	names := s.approverNames(p, a)
	switch {
	case names == "":
		return p.Text("approval.not-approver")
	case len(a.Approvers) == 1:
		return p.Text("approval.only", names)
	}
	return p.Text("approval.only-these", names)
}

// maxNames is the maximum number of users whose names a short text lists.
const maxNames = 3

// approverNames lists the names of the users who may decide the approval. It returns "" if there are more than
// maxNames, or if a name is unknown.
func (s *Screen) approverNames(p lang.Printer, a orchestrator.Approval) string {
	var names []string
	for _, user := range a.Approvers {
		name := short(s.o.Names.User(user), render.NameLimit)
		if name == "" || len(names) == maxNames {
			return ""
		}
		names = append(names, name)
	}
	return p.List(names...)
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

// nameOfDecider returns the name of the user who decided. It returns "" in a private chat, where the name is not shown.
func (s *Screen) nameOfDecider(a orchestrator.Approval) string {
	if a.By == 0 || !outbox.ChatOf(a.Conversation.Chat).Group {
		return ""
	}
	return s.o.Names.User(a.By)
}
