package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// entry is one approval and its messages. The lock of Screen guards it. The screen keeps it until the approval is over and
// the chat shows that.
type entry struct {
	// These never change.
	id       orchestrator.ApprovalID
	conv     orchestrator.ConversationID
	log      *slog.Logger
	message  *message.Message
	notice   *message.Message // says that message may be missing, if it is unknown whether that arrived
	reminder *message.Message // of message, while the approval waits

	approval orchestrator.Approval
	draft    draft
	loaded   bool // draft is what the journal has
	pinned   pinned
	timer    *time.Timer // of the reminder; nil if none is to come
}

// pinned is what the screen knows of the pin of an approval's message. The lock of Screen guards it.
type pinned struct {
	asked   int  // the message of which a pin was asked for
	refused bool // Telegram does not let the bot pin here
}

// keyPrefix is what the keys of the messages of approvals begin with.
const keyPrefix = "approval/"

// idOf is the approval that the message with a key shows; empty for none.
func idOf(key string) orchestrator.ApprovalID {
	rest, _ := strings.CutPrefix(key, keyPrefix)
	if rest == key {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return orchestrator.ApprovalID(id)
}

// entryOfLocked is the entry of an approval. A new one continues with the messages that the chat has.
func (s *Screen) entryOfLocked(a orchestrator.Approval) *entry {
	if e := s.entries[a.ID]; e != nil {
		return e
	}
	e := &entry{
		id: a.ID, conv: a.Conversation, approval: a,
		log: s.o.Log.With("turn", a.Turn, "chat", a.Conversation.Chat, "topic", a.Conversation.Topic),
	}
	e.message = s.open(e, "", s.content)
	e.notice = s.open(e, "/notice", s.missing)
	e.reminder = s.open(e, "/reminder", s.reminds)
	s.entries[a.ID] = e
	return e
}

func (s *Screen) open(e *entry, suffix string, content func(context.Context, *entry) (message.Content, error)) *message.Message {
	return s.o.Messages.Open(message.Spec{
		Key: keyPrefix + string(e.id) + suffix, Turn: e.approval.Turn, To: e.conv,
		Content: func(ctx context.Context) (message.Content, error) { return content(ctx, e) },
		Called:  func(m *message.Message) { s.called(e, m) },
	})
}

func (e *entry) open() bool { return e.approval.State == orchestrator.ApprovalOpen }

// push has the chat show how an approval stands.
func (s *Screen) push(e *entry) {
	s.mu.Lock()
	attached, open := s.service != nil, e.open()
	s.mu.Unlock()
	if attached {
		e.message.Update(outbox.Awaited)
	}
	if attached && !open { // what reminds of it is untrue
		e.reminder.Update(outbox.Awaited)
	}
}

// called continues after a call: the notice depends on the message, and what is over and shown is forgotten in the end.
func (s *Screen) called(e *entry, m *message.Message) {
	unknown := e.message.State() == orchestrator.Unknown
	if m == e.message && unknown || m == e.notice && !unknown && m.State() == orchestrator.Sent {
		e.notice.Update(outbox.Awaited)
		return
	}
	if m == e.message {
		s.pin(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.open() || s.entries[e.id] != e || slices.Contains(s.over, e) {
		return
	}
	s.scheduleLocked(e)
	if s.over = append(s.over, e); len(s.over) > overKept {
		delete(s.entries, s.over[0].id)
		s.over = s.over[1:]
	}
}

// overKept is how many approvals that are over and shown the screen remembers: a press that comes a moment after the decision finds
// what the chat shows, and edits nothing.
const overKept = 16

// content is what the message of an approval shows now. An approval that is over is not sent.
func (s *Screen) content(ctx context.Context, e *entry) (message.Content, error) {
	if err := s.load(ctx, e); err != nil {
		return message.Content{}, err
	}
	s.mu.Lock()
	a, c := e.approval, s.drawLocked(e)
	s.mu.Unlock()
	if a.State != orchestrator.ApprovalOpen {
		c.Life = message.OnlyEdits
		return c, nil
	}
	c.Life = message.Returns
	if e.message.State() == orchestrator.Pending {
		c.ReplyTo = s.promptOf(ctx, a)
	}
	return c, nil
}

// drawLocked is what the message shows.
func (s *Screen) drawLocked(e *entry) (c message.Content) {
	c.Text, c.Keyboard = s.view(e.approval).draw(e.draft, s.nameOfLocked(e.approval))
	c.Mark = c.Digest()
	return c
}

// missing is what the notice about a message shows that may not have arrived. The screen does not send the approval again
// blindly: a button turns the notice into it.
func (s *Screen) missing(ctx context.Context, e *entry) (message.Content, error) {
	p := s.o.Lang.Of(e.conv.Chat)
	if e.message.State() != orchestrator.Unknown {
		return message.Content{Life: message.Goes}, nil
	}
	c, err := s.content(ctx, e)
	if err != nil || c.Life == message.OnlyEdits {
		return c, err
	}
	s.mu.Lock()
	a := e.approval
	s.mu.Unlock()
	return message.Content{
		Text:     render.Plain(p.Text("approval.may-be-missing", render.AgentName(p, a.Agent))),
		Keyboard: s.view(a).keyboard([]button{{"approval.show", opShow}}),
	}, nil
}

// promptOf is the message that an approval replies to. In a group several users prompt at once.
func (s *Screen) promptOf(ctx context.Context, a orchestrator.Approval) int {
	if !outbox.ChatOf(a.Conversation.Chat).Group {
		return 0
	}
	st, err := s.service.Status(ctx, a.Conversation)
	if err != nil || st.Running == nil || st.Running.Turn != a.Turn {
		return 0
	}
	return st.Running.Message
}

// enter is the entry of an approval, with its draft and the states of its messages.
func (s *Screen) enter(ctx context.Context, a orchestrator.Approval) (*entry, error) {
	s.mu.Lock()
	e := s.entryOfLocked(a)
	s.mu.Unlock()
	return e, errors.Join(s.load(ctx, e), e.notice.Load(ctx))
}

// draftKey is the key of a draft in the journal.
func draftKey(id orchestrator.ApprovalID) string { return "ask:" + string(id) }

// load reads the draft of the previous process, once. A message that no user has changed since it was sent shows what it was sent with,
// unless its group may have become a supergroup since: then an edit finds that out.
func (s *Screen) load(ctx context.Context, e *entry) error {
	s.mu.Lock()
	loaded, questions := e.loaded, e.approval.Questions
	s.mu.Unlock()
	if loaded {
		return nil
	}
	data, err := s.o.Journal.LoadCard(ctx, draftKey(e.id))
	if err != nil {
		return fmt.Errorf("load a draft: %w", err)
	}
	d, err := decodeDraft(data, questions)
	if err != nil {
		e.log.Warn("a draft cannot be read; it begins anew", "err", err)
	}
	if err := e.message.Load(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.loaded {
		return nil
	}
	e.draft, e.loaded = d, true
	moves := e.message.To().Chat < 0 && e.message.To().Chat > supergroups
	if c := s.drawLocked(e); !moves && e.message.State() == orchestrator.Sent && len(d.Updates) == 0 && e.message.Mark() == c.Mark {
		e.message.Trust(c)
	}
	return nil
}

// supergroups is above the ids of all supergroups: Telegram puts -100 before their numbers.
const supergroups = -1_000_000_000_000

// change changes the draft of an entry by f, saves it and shows it, unless f returns false.
func (s *Screen) change(ctx context.Context, e *entry, f func(d *draft) bool) (draft, error) {
	changed := false
	d, err := s.keep(ctx, e, func(d *draft) bool {
		changed = f(d)
		return changed
	})
	if changed && err == nil {
		s.push(e)
	}
	return d, err
}

// keep is change for what the message does not show.
func (s *Screen) keep(ctx context.Context, e *entry, f func(d *draft) bool) (draft, error) {
	s.mu.Lock()
	d, questions := e.draft.clone(), e.approval.Questions
	if !f(&d) {
		s.mu.Unlock()
		return d, nil
	}
	e.draft, e.loaded = d, true
	s.mu.Unlock()
	data, err := d.encode(questions)
	if err == nil {
		err = s.o.Journal.SaveCard(ctx, draftKey(e.id), data)
	}
	if err != nil {
		return d, fmt.Errorf("save a draft: %w", err)
	}
	return d, nil
}

// find takes the message of a pressed button for that of the approval, where it was unknown whether that had arrived. The
// notice is one only once the user asks for the approval there.
func (s *Screen) find(ctx context.Context, e *entry, id int, op operation) error {
	notice := e.notice.ID() == id
	if e.message.State() != orchestrator.Unknown || id <= 0 || notice && op != opShow {
		return nil
	}
	if err := e.message.Adopt(ctx, id); err != nil {
		return err
	}
	if notice {
		if err := e.notice.Reset(ctx, orchestrator.Removed); err != nil {
			return err
		}
	}
	e.notice.Update(outbox.Awaited)
	s.push(e)
	return nil
}

// correct shows the end of an approval, also in a message that is not the approval's any more and still had buttons.
func (s *Screen) correct(e *entry, a orchestrator.Approval, id int) {
	if a.ID != e.id || a.State == orchestrator.ApprovalOpen || id <= 0 {
		return
	}
	s.mu.Lock()
	e.approval = a
	s.scheduleLocked(e)
	s.mu.Unlock()
	if e.message.ID() != id {
		s.correctOther(e, a, id)
	}
	s.push(e)
}

// correctOther corrects a message that is not the approval's any more.
func (s *Screen) correctOther(e *entry, a orchestrator.Approval, id int) {
	var other *message.Message
	other = s.o.Messages.Open(message.Spec{
		Key: keyPrefix + string(e.id) + "/" + strconv.Itoa(id), Turn: a.Turn, To: e.conv,
		Content: func(ctx context.Context) (message.Content, error) {
			t, _ := s.view(a).draw(draft{}, "")
			return message.Content{Text: t, Life: message.OnlyEdits}, other.Adopt(ctx, id)
		},
	})
	other.Update(outbox.Awaited)
}

// remindAfter is when a chat is reminded of an approval that does not expire.
const remindAfter = 15 * time.Minute

// remindAt is when the chat is reminded of an approval: half of its time is over then.
func remindAt(a orchestrator.Approval) time.Time {
	if a.Expires.IsZero() {
		return a.Asked.Add(remindAfter)
	}
	return a.Asked.Add(a.Expires.Sub(a.Asked) / 2)
}

// scheduleLocked sets the timer of the reminder of an approval that waits, and ends that of one that does not.
func (s *Screen) scheduleLocked(e *entry) {
	switch {
	case !e.open() && e.timer != nil:
		e.timer.Stop()
		e.timer = nil
	case e.open() && e.timer == nil && !e.approval.Asked.IsZero():
		e.timer = time.AfterFunc(max(remindAt(e.approval).Sub(s.o.Now()), 0), func() { e.reminder.Update(outbox.Awaited) })
	}
}

// reminds is what the reminder of an approval shows. It goes with the decision.
func (s *Screen) reminds(_ context.Context, e *entry) (message.Content, error) {
	p := s.o.Lang.Of(e.conv.Chat)
	s.mu.Lock()
	a, shown := e.approval, e.message.ID()
	s.mu.Unlock()
	now := s.o.Now()
	switch {
	case a.State != orchestrator.ApprovalOpen:
		return message.Content{Life: message.Goes}, nil
	case a.WhyClosed(now) != nil, shown == 0: // it ends in a moment, or there is nothing to point to
		return message.Content{}, outbox.ErrNotNeeded
	}
	agent := render.AgentName(p, a.Agent)
	text := p.Text("approval.reminder", agent)
	switch {
	case a.Expires.IsZero():
	case a.Request == nil:
		text = p.Text("approval.reminder-of-question", agent, clock(a.Expires))
	default:
		text = p.Text("approval.reminder-until", agent, clock(a.Expires))
	}
	return message.Content{Text: render.Plain(text), ReplyTo: shown, Silent: s.o.Quiet != nil && s.o.Quiet(now)}, nil
}
