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

// entry is one approval with its messages. The lock of Screen guards it. The screen drops an entry when the approval
// has ended and the chat shows its end.
type entry struct {
	// These fields never change.
	id       orchestrator.ApprovalID
	conv     orchestrator.ConversationID
	log      *slog.Logger
	message  *message.Message
	notice   *message.Message // note that message may be missing; nil unless its outcome is unknown
	reminder *message.Message // points users to message while the approval waits

	approval orchestrator.Approval
	draft    draft
	loaded   bool        // draft was read from the journal
	pinAsked int         // id of the message to pin, or pinRefused
	timer    *time.Timer // fires the reminder; nil if none is due
}

// pinRefused is the value of entry.pinAsked after Telegram rejected a pin, because the bot may not pin in this chat.
const pinRefused = -1

// keyPrefix starts the keys of approvals' messages.
const keyPrefix = "approval/"

// idOf returns the approval that belongs to a message key, or "".
func idOf(key string) orchestrator.ApprovalID {
	rest, _ := strings.CutPrefix(key, keyPrefix)
	if rest == key {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return orchestrator.ApprovalID(id)
}

// entryOfLocked returns the entry of an approval. A new entry continues with the messages that are already in the chat.
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
	e.reminder = s.open(e, "/reminder", s.reminderContent)
	s.entries[a.ID] = e
	return e
}

func (s *Screen) open(e *entry, suffix string,
	content func(context.Context, *entry) (message.Content, error)) *message.Message {
	return s.o.Messages.Open(message.Spec{
		Key: keyPrefix + string(e.id) + suffix, Turn: e.approval.Turn, To: e.conv,
		Content: func(ctx context.Context) (message.Content, error) { return content(ctx, e) },
		Called:  func(m *message.Message) { s.called(e, m) },
	})
}

func (e *entry) open() bool { return e.approval.State == orchestrator.ApprovalOpen }

// push makes the chat show the current state of an approval.
func (s *Screen) push(e *entry) {
	s.mu.Lock()
	attached, open := s.service != nil, e.open()
	s.mu.Unlock()
	if attached {
		e.message.Update(outbox.Awaited)
	}
	if attached && !open { // the approval is over, so its reminder goes
		e.reminder.Update(outbox.Awaited)
	}
}

// called updates the entry after a call. It updates the notice, whose text depends on the message. If the approval
// has ended and the chat shows its end, called drops the entry.
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

// overKept limits the number of finished approvals that the screen remembers. If a user presses a button just after
// the decision, the screen then sees that the message is up to date, and makes no edit.
const overKept = 16

// content returns the current content of an approval's message. If the approval has ended, the message may only be
// edited, not sent.
func (s *Screen) content(ctx context.Context, e *entry) (message.Content, error) {
	if err := s.load(ctx, e); err != nil {
		return message.Content{}, err
	}
	s.mu.Lock()
	a, c := e.approval, s.drawLocked(e)
	s.mu.Unlock()
	if a.State != orchestrator.ApprovalOpen {
		c.Lifecycle = message.EditOnly
		return c, nil
	}
	c.Lifecycle = message.ResendIfDeleted
	if e.message.State() == orchestrator.Pending {
		c.ReplyTo = s.promptOf(ctx, a)
	}
	return c, nil
}

// drawLocked returns the content that the message shows.
func (s *Screen) drawLocked(e *entry) (c message.Content) {
	c.Text, c.Keyboard = s.view(e.approval).draw(e.draft, s.nameOfLocked(e.approval))
	c.Mark = c.Digest()
	return c
}

// missing returns the notice about a message that may not have arrived. The screen does not send the approval again
// without a user's request. A button on the notice turns the notice into the approval.
func (s *Screen) missing(ctx context.Context, e *entry) (message.Content, error) {
	p := s.o.Lang.Of(e.conv.Chat)
	if e.message.State() != orchestrator.Unknown {
		return message.Content{Lifecycle: message.DeleteWhenDone}, nil
	}
	c, err := s.content(ctx, e)
	if err != nil || c.Lifecycle == message.EditOnly {
		return c, err
	}
	s.mu.Lock()
	a := e.approval
	s.mu.Unlock()
	return message.Content{
		Text:      render.Plain(p.Text("approval.may-be-missing", render.AgentName(p, a.Agent))),
		Keyboard:  s.view(a).keyboard([]button{s.view(a).button("approval.show", opShow)}),
		Lifecycle: message.ResendIfUnknown,
	}, nil
}

// promptOf returns the prompt's message, to which the approval's message replies. In a group, several users may send
// prompts at the same time.
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

// enter returns the entry of an approval, with its draft and the states of its messages loaded.
func (s *Screen) enter(ctx context.Context, a orchestrator.Approval) (*entry, error) {
	s.mu.Lock()
	e := s.entryOfLocked(a)
	s.mu.Unlock()
	return e, errors.Join(s.load(ctx, e), e.notice.Load(ctx))
}

// draftKey returns the journal key of a draft.
func draftKey(id orchestrator.ApprovalID) string { return "ask:" + string(id) }

// load reads the draft of the previous process, once. If no user has changed a message since it was sent, the chat
// shows its first content, and no edit is needed. But if the group may have become a supergroup, load forces an edit:
// its result shows whether the group has.
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
	moves := e.message.To().Chat < 0 && e.message.To().Chat > supergroupBound
	untouched := e.message.State() == orchestrator.Sent && len(d.Updates) == 0
	if c := s.drawLocked(e); untouched && !moves && e.message.Mark() == c.Mark {
		e.message.AssumeShown(c)
	}
	return nil
}

// supergroupBound is greater than the ids of all supergroups, which are -100 followed by at least ten digits. Ids of
// other groups are greater than supergroupBound.
const supergroupBound = -1_000_000_000_000

// changeDraft applies f to an entry's draft, saves the draft and shows it. If f returns false, changeDraft neither
// saves nor shows the draft.
func (s *Screen) changeDraft(ctx context.Context, e *entry, f func(d *draft) bool) (draft, error) {
	changed := false
	d, err := s.saveDraft(ctx, e, func(d *draft) bool {
		changed = f(d)
		return changed
	})
	if changed && err == nil {
		s.push(e)
	}
	return d, err
}

// saveDraft is like changeDraft, for fields of the draft that the message does not show.
func (s *Screen) saveDraft(ctx context.Context, e *entry, f func(d *draft) bool) (draft, error) {
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

// adoptMessage records the message of a pressed button as the approval's message, if ductor did not know whether that
// message had arrived. It adopts the notice only if the user asks to show the approval there.
func (s *Screen) adoptMessage(ctx context.Context, e *entry, id int, op operation) error {
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

// correct shows that an approval has ended. It also corrects another message that still has buttons of the approval.
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

// correctOther corrects another message that still has buttons of the approval.
func (s *Screen) correctOther(e *entry, a orchestrator.Approval, id int) {
	var other *message.Message
	other = s.o.Messages.Open(message.Spec{
		Key: keyPrefix + string(e.id) + "/" + strconv.Itoa(id), Turn: a.Turn, To: e.conv,
		Content: func(ctx context.Context) (message.Content, error) {
			t, _ := s.view(a).draw(draft{}, "")
			return message.Content{Text: t, Lifecycle: message.EditOnly}, other.Adopt(ctx, id)
		},
	})
	other.Update(outbox.Awaited)
}

// remindAfter is the time until the reminder of an approval that does not expire.
const remindAfter = 15 * time.Minute

// remindAt returns the time of an approval's reminder: halfway to its expiry, or remindAfter if it does not expire.
func remindAt(a orchestrator.Approval) time.Time {
	if a.Expires.IsZero() {
		return a.Asked.Add(remindAfter)
	}
	return a.Asked.Add(a.Expires.Sub(a.Asked) / 2)
}

// scheduleLocked starts the reminder's timer if the approval waits, and stops it otherwise.
func (s *Screen) scheduleLocked(e *entry) {
	switch {
	case !e.open() && e.timer != nil:
		e.timer.Stop()
		e.timer = nil
	case e.open() && e.timer == nil && !e.approval.Asked.IsZero():
		wait := max(remindAt(e.approval).Sub(s.o.Now()), 0)
		e.timer = time.AfterFunc(wait, func() { e.reminder.Update(outbox.Awaited) })
	}
}

// reminderContent returns the content of an approval's reminder. The reminder is deleted when the approval is decided.
func (s *Screen) reminderContent(_ context.Context, e *entry) (message.Content, error) {
	p := s.o.Lang.Of(e.conv.Chat)
	s.mu.Lock()
	a, shown := e.approval, e.message.ID()
	s.mu.Unlock()
	now := s.o.Now()
	switch {
	case a.State != orchestrator.ApprovalOpen:
		return message.Content{Lifecycle: message.DeleteWhenDone}, nil
	case a.WhyClosed(now) != nil, shown == 0: // the approval is about to expire, or has no message to point to
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
