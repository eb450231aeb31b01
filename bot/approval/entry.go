package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// entry contains all data about one approval that is shown in a chat. Screen.mu guards the entry. Screen drops the
// entry some time after the chat shows the decision.
type entry struct {
	// These fields do not change.
	id       orchestrator.ApprovalID
	conv     orchestrator.ConversationID
	log      *slog.Logger
	message  *message.Message
	notice   *message.Message // warns that the approval's message may be missing, because Telegram did not confirm it
	reminder *message.Message // reminds users of the open approval; replies to the approval's message

	approval orchestrator.Approval
	draft    draft
	loaded   bool        // true if draft was read from the database, or the approval is new
	pinAsked int         // ID of the message that was or will be pinned, or pinRefused
	timer    *time.Timer // sends the reminder; nil if no reminder is planned
}

// pinRefused means that the bot may not pin messages in this chat.
const pinRefused = -1

// keyPrefix is the prefix of the database keys of all messages in this package.
const keyPrefix = "approval/"

// idOf returns the ID of the approval in a message's database key, or "" if the message does not belong to an approval.
func idOf(key string) orchestrator.ApprovalID {
	rest, _ := strings.CutPrefix(key, keyPrefix)
	if rest == key {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return orchestrator.ApprovalID(id)
}

// entryOfLocked returns the entry of an approval, and creates it if necessary. A new entry continues to use the
// messages that a previous process sent.
func (s *Screen) entryOfLocked(a orchestrator.Approval, isNew bool) *entry {
	if e := s.entries[a.ID]; e != nil {
		return e
	}
	e := &entry{
		id: a.ID, conv: a.Conversation, approval: a, loaded: isNew,
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
		Key: keyPrefix + string(e.id) + suffix, Turn: e.approval.Turn, To: e.conv, New: e.loaded,
		Content: func(ctx context.Context) (message.Content, error) { return content(ctx, e) },
		Called:  func(m *message.Message) { s.afterRequest(e, m) },
	})
}

func (e *entry) open() bool { return e.approval.State == orchestrator.ApprovalOpen }

func (s *Screen) push(e *entry) {
	s.mu.Lock()
	attached, open := s.service != nil, e.open()
	s.mu.Unlock()
	if attached {
		e.message.Update(outbox.Awaited)
	}
	if attached && !open { // delete the reminder
		e.reminder.Update(outbox.Awaited)
	}
}

// afterRequest runs after each request to Telegram about a message of the entry. It sends e.notice if Telegram did not
// confirm the approval's message, and deletes e.notice if Telegram confirmed the message after all. If the approval is
// closed, afterRequest appends the entry to s.closed.
func (s *Screen) afterRequest(e *entry, m *message.Message) {
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
	if e.open() || s.entries[e.id] != e || slices.Contains(s.closed, e) {
		return
	}
	s.scheduleLocked(e)
	if s.closed = append(s.closed, e); len(s.closed) > maxClosed {
		delete(s.entries, s.closed[0].id)
		s.closed = s.closed[1:]
	}
}

// maxClosed is the maximum number of closed approvals in memory. For these approvals, Screen knows whether the message
// in the chat already shows the decision. So Screen need not edit the message if a user presses a button late.
const maxClosed = 16

// content returns the current content of the approval's message. A closed approval is only shown if its message is
// already in the chat.
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

// drawLocked returns the text and the buttons of the approval's message.
func (s *Screen) drawLocked(e *entry) (c message.Content) {
	c.Text, c.Keyboard = s.view(e.approval).draw(e.draft, s.nameOfDecider(e.approval))
	c.Mark = c.Digest()
	return c
}

// missing returns the notice that an approval's message may be missing in the chat. The notice has a button that shows
// the approval in place of the notice. ductor shows the approval again only if a user presses this button, because two
// messages with the same buttons would be confusing.
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

// promptOf returns the ID of the prompt's message in a group. The approval replies to this message, because several
// users may send prompts at the same time. promptOf returns 0 in a private chat.
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

// enter returns the entry of an approval, after loading the stored draft and messages of the approval.
func (s *Screen) enter(ctx context.Context, a orchestrator.Approval) (*entry, error) {
	s.mu.Lock()
	e := s.entryOfLocked(a, false)
	s.mu.Unlock()
	return e, errors.Join(s.load(ctx, e), e.notice.Load(ctx))
}

func draftKey(id orchestrator.ApprovalID) string { return "ask:" + string(id) }

// load reads the stored draft of an approval once. If no user has pressed a button since the message was sent, load
// also records that the message is up to date, so that the message need not be edited.
//
// In an ordinary group, the message is edited anyway: if the group has become a supergroup, Telegram reports this only
// in the response to such an edit.
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

// loadOpen reads the stored drafts of all open approvals that this process has not shown yet. It returns errors about
// approvals of the given conversation, and logs errors about other approvals.
//
// loadOpen reads the drafts of all conversations, because an entry may still have the ID that its conversation had before
// the group became a supergroup. Only the stored message has the new ID.
func (s *Screen) loadOpen(ctx context.Context, conversation orchestrator.ConversationID) error {
	s.mu.Lock()
	entries := slices.Collect(maps.Values(s.entries))
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.loaded || !e.open() })
	s.mu.Unlock()
	var errs []error
	for _, e := range entries {
		switch err := s.load(ctx, e); {
		case err == nil:
		case e.conv == conversation || e.message.To() == conversation:
			errs = append(errs, err)
		default:
			e.log.Error("load the draft of another chat", "err", err)
		}
	}
	return errors.Join(errs...)
}

// supergroupBound separates the IDs of supergroups from the IDs of other groups: the IDs of supergroups are less than
// the bound.
const supergroupBound = -1_000_000_000_000

// changeDraft changes the draft with f, stores the draft and shows it. If f returns false, changeDraft neither stores
// nor shows the draft.
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

// saveDraft is like changeDraft, but does not show the draft.
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

// adoptMessage is called when a user presses a button in the message with the given ID. If Telegram has not confirmed
// the approval's message, the message with the button becomes e.message. But the message of e.notice becomes e.message
// only if op is opShow.
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

// correct records that an approval is closed, and edits its message. id is the message with the pressed button, or the
// message to which the user replied. If this is an older message of the approval, correct also edits the older message.
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

// correctOther edits an old message that still has buttons of the approval.
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

// remindAfter is the age of an approval at which users get a reminder, if the approval does not expire.
const remindAfter = 15 * time.Minute

// remindAt returns when the reminder must be sent: after half of the time until the approval expires, or after
// remindAfter if the approval does not expire.
func remindAt(a orchestrator.Approval) time.Time {
	if a.Expires.IsZero() {
		return a.Asked.Add(remindAfter)
	}
	return a.Asked.Add(a.Expires.Sub(a.Asked) / 2)
}

// scheduleLocked starts the timer for the reminder if the approval is open, and stops it otherwise.
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

// reminderContent returns the reminder of an open approval. If the approval is closed, it returns content that makes
// Messages delete the reminder.
func (s *Screen) reminderContent(_ context.Context, e *entry) (message.Content, error) {
	p := s.o.Lang.Of(e.conv.Chat)
	s.mu.Lock()
	a, shown := e.approval, e.message.ID()
	s.mu.Unlock()
	now := s.o.Now()
	switch {
	case a.State != orchestrator.ApprovalOpen:
		return message.Content{Lifecycle: message.DeleteWhenDone}, nil
	case a.WhyClosed(now) != nil, shown == 0: // the approval is about to expire, or its message is not in the chat
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
