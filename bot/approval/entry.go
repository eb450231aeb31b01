package approval

import (
	"context"
	"fmt"
	"log/slog"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// entry is one approval and its message. The lock of Screen guards it. The screen keeps it until the approval is over and the chat
// shows that.
type entry struct {
	// These never change.
	id   orchestrator.ApprovalID
	conv orchestrator.ConversationID
	log  *slog.Logger

	approval orchestrator.Approval
	draft    draft
	loaded   bool // draft is what the journal has

	// state and message are what the service recorded last. Unknown with a message means that the message is the
	// notice that the approval may be missing; with noNotice, that notice may be missing too.
	state   orchestrator.SendState
	message int
	shown   string // fingerprint of what the message shows; empty if unknown
	busy    bool   // a call waits in the outbox or is being made
	fails   int    // calls since the last that succeeded
	tried   fallbacks
}

// noNotice takes the place of the number of a notice that may be missing.
const noNotice = -1

// fallbacks is a set of other ways to show an approval, which Telegram's answers made necessary.
type fallbacks uint8

const (
	inMainTopic       fallbacks = 1 << iota // its topic is gone
	withoutFormatting                       // Telegram refused the formatting
	sentTwice                               // a user deleted the message
)

// entryOfLocked is the entry of an approval. A new one continues with the message that the approval names.
func (s *Screen) entryOfLocked(a orchestrator.Approval) *entry {
	if e := s.entries[a.ID]; e != nil {
		return e
	}
	e := &entry{
		id: a.ID, conv: a.Conversation,
		log:      s.log.With("turn", a.Turn, "chat", a.Conversation.Chat, "topic", a.Conversation.Topic),
		approval: a, state: a.Sent, message: a.Message,
	}
	switch a.Sent {
	case "", orchestrator.Pending:
		e.state, e.loaded = orchestrator.Pending, true
	case orchestrator.Sending: // the previous process ended while it sent the message
		e.state = orchestrator.Unknown
	}
	s.entries[a.ID] = e
	return e
}

func (e *entry) open() bool { return e.approval.State == orchestrator.ApprovalOpen }

// shownIn is the conversation that has the message.
func (e *entry) shownIn() orchestrator.ConversationID {
	id := e.conv
	if e.tried&inMainTopic != 0 {
		id.Topic = 0
	}
	return id
}

// viewLocked is what the message of an entry should show now.
func (s *Screen) viewLocked(e *entry) (render.Text, tgapi.Keyboard) {
	var t render.Text
	var k tgapi.Keyboard
	if e.state == orchestrator.Unknown && e.open() {
		t, k = drawMissing(e.approval)
	} else {
		t, k = draw(e.approval, e.draft, s.nameOfLocked(e.approval))
	}
	if e.tried&inMainTopic != 0 {
		if noted := render.Concat(render.Styled(render.Italic, render.MovedNote), t); render.Fits(noted, render.MessageLimit) {
			t = noted
		}
	}
	if e.tried&withoutFormatting != 0 {
		t.Entities = nil
	}
	return t, k
}

func fingerprint(t render.Text, k tgapi.Keyboard) string {
	return render.Fingerprint(t) + fmt.Sprint(k)
}

// enter is the entry of an approval, with its draft.
func (s *Screen) enter(ctx context.Context, a orchestrator.Approval) (*entry, error) {
	s.mu.Lock()
	e := s.entryOfLocked(a)
	s.mu.Unlock()
	return e, s.load(ctx, e)
}

// draftKey is the key of a draft in the journal.
func draftKey(id orchestrator.ApprovalID) string { return "ask:" + string(id) }

// load reads the draft of the previous process, once.
func (s *Screen) load(ctx context.Context, e *entry) error {
	s.mu.Lock()
	loaded, questions := e.loaded, e.approval.Questions
	s.mu.Unlock()
	if loaded {
		return nil
	}
	data, _, err := s.journal.LoadCard(ctx, draftKey(e.id))
	if err != nil {
		return fmt.Errorf("load a draft: %w", err)
	}
	d, err := decodeDraft(data, questions)
	if err != nil {
		e.log.Warn("a draft cannot be read; it begins anew", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.loaded {
		e.draft, e.loaded = d, true
	}
	return nil
}

// change changes the draft of an entry by f, saves it and shows it, unless f returns false.
func (s *Screen) change(ctx context.Context, e *entry, f func(d *draft) bool) (draft, error) {
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
		err = s.journal.SaveCard(ctx, draftKey(e.id), data)
	}
	if err != nil {
		return d, fmt.Errorf("save a draft: %w", err)
	}
	s.push(e)
	return d, nil
}

// find records the message of a pressed button where the screen did not know whether the message had arrived.
func (s *Screen) find(ctx context.Context, e *entry, message int, op operation) error {
	s.mu.Lock()
	notice := 0
	lost := e.state == orchestrator.Unknown && (e.message != message || op == opShow)
	if lost && e.message > 0 && e.message != message {
		notice = e.message
	}
	busy := e.busy // perhaps with the notice: then that becomes the message
	s.mu.Unlock()
	if !lost || busy || message <= 0 {
		return nil
	}
	if notice != 0 {
		s.removeNotice(e, notice)
	}
	s.mu.Lock()
	e.shown = ""
	s.mu.Unlock()
	if err := s.move(ctx, e, orchestrator.Sent, message); err != nil {
		return err
	}
	s.push(e)
	return nil
}

// removeNotice deletes a notice that proved wrong.
func (s *Screen) removeNotice(e *entry, message int) {
	s.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(e.conv.Chat), Priority: outbox.Housekeeping, Key: "ask/" + string(e.id) + "/notice", Idempotent: true,
		Run: func(ctx context.Context) error { return s.client.Delete(ctx, e.conv.Chat, message) },
	}, func(err error) {
		if err != nil {
			e.log.Warn("delete the notice about an approval or a question", "err", err)
		}
	})
}

// correct shows the end of an approval in a message that still had buttons.
func (s *Screen) correct(e *entry, a orchestrator.Approval, message int) {
	if a.ID != e.id || a.State == orchestrator.ApprovalOpen || message <= 0 {
		return
	}
	s.mu.Lock()
	e.approval = a
	own := e.message == message
	if own {
		e.shown = ""
	}
	s.mu.Unlock()
	if !own {
		s.out.Go(context.Background(), outbox.Call{
			Chat: outbox.ChatOf(e.conv.Chat), Delivery: outbox.Newest, Priority: outbox.Housekeeping, Key: "ask/" + string(e.id) + "/other", Idempotent: true,
			Run: func(ctx context.Context) error {
				t, _ := draw(a, draft{}, "")
				return s.client.Edit(ctx, e.conv.Chat, message, t, nil)
			},
		}, nil)
	}
	s.push(e)
}
