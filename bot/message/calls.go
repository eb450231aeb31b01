package message

import (
	"context"
	"errors"
	"strings"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Do makes a step that was begun. An error is one that the outbox understands: ErrOtherForm if the next step shows the
// same in another way, ErrNotNeeded if there is no step.
func (m *Message) Do(ctx context.Context, step Step, want Content) error {
	switch step {
	case Send:
		return m.send(ctx, want)
	case Edit:
		return m.edit(ctx, want)
	case Delete:
		return m.remove(ctx, want)
	case Record:
		m.settle(want)
		return m.record(ctx)
	}
	return outbox.ErrNotNeeded
}

func (m *Message) send(ctx context.Context, want Content) error {
	if err := m.save(ctx, orchestrator.Sending, 0); err != nil {
		m.mu.Lock()
		m.row.State = orchestrator.Pending // it did not leave
		m.mu.Unlock()
		return err
	}
	id, err := m.call(ctx, want)
	keep := context.WithoutCancel(ctx)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault:
		m.showed(want)
		m.all.arrived(m.spec.Key, id)
		return m.save(keep, orchestrator.Sent, id)
	case tgapi.UnknownFault:
		m.log.Warn("a message may or may not have arrived; it is not sent again", "err", err)
		m.settle(want)
		return m.save(keep, orchestrator.Unknown, 0)
	case tgapi.TopicGone, tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.MessageGone:
		if m.refused(f, err) {
			return errors.Join(outbox.ErrOtherForm, m.save(keep, orchestrator.Pending, 0))
		}
		return m.save(keep, orchestrator.Failed, 0)
	}
	return errors.Join(err, m.save(keep, orchestrator.Pending, 0))
}

func (m *Message) call(ctx context.Context, want Content) (int, error) {
	to := m.To()
	if d := want.Document; d != nil {
		return m.all.client.SendDocument(ctx, tgapi.Document{To: to, Name: d.Name, Caption: want.Text, Plain: d.Content, ReplyTo: want.ReplyTo})
	}
	if want.File != "" {
		return m.all.client.SendDocument(ctx, tgapi.Document{To: to, Name: "answer.md", Content: strings.NewReader(want.File)})
	}
	return m.all.client.Send(ctx, tgapi.Message{
		To: to, Text: m.dressed(want.Text), Keyboard: want.Keyboard, ReplyTo: want.ReplyTo, Silent: want.Silent,
	})
}

// record brings the store up to date. There is no call to make.
func (m *Message) record(ctx context.Context) error {
	m.mu.Lock()
	late, state, id := m.storage == behind, m.row.State, m.row.ID
	m.mu.Unlock()
	if late {
		if err := m.save(ctx, state, id); err != nil {
			return err
		}
	}
	return outbox.ErrNotNeeded
}

// refused picks another way to show what Telegram refused, and says whether there is one.
func (m *Message) refused(f tgapi.Fault, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case f.Kind == tgapi.TopicGone && m.row.Conversation.Topic != 0:
		m.row.Conversation.Topic = 0
		m.tried |= inMainTopic
	case (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong) && m.tried&withoutFormatting == 0:
		m.log.Warn("Telegram refused a message; it goes out without formatting", "err", err)
		m.tried |= withoutFormatting
	default:
		m.log.Error("Telegram refused a message for good", "err", err)
		m.refusal = f.Kind
		return false
	}
	return true
}

func (m *Message) edit(ctx context.Context, want Content) error {
	err := m.all.client.Edit(ctx, m.To().Chat, m.ID(), m.dressed(want.Text), want.Keyboard)
	keep := context.WithoutCancel(ctx)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault, tgapi.NotModified:
		return m.edited(keep, want)
	case tgapi.MessageGone:
		m.mu.Lock()
		again := want.Life == Returns && m.tried&sentTwice == 0
		m.tried |= sentTwice
		m.mu.Unlock()
		if !again {
			return m.save(keep, orchestrator.Removed, 0)
		}
		return errors.Join(outbox.ErrOtherForm, m.save(keep, orchestrator.Pending, 0))
	case tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.TopicGone:
		if m.refused(f, err) {
			return outbox.ErrOtherForm
		}
		return m.edited(keep, want) // there is no other way to show it
	}
	return err
}

// edited records that no edit is left to make. The store hears of that only if it says what is owed.
func (m *Message) edited(ctx context.Context, want Content) error {
	if !m.showed(want) {
		return nil
	}
	return m.save(ctx, orchestrator.Sent, m.ID())
}

func (m *Message) remove(ctx context.Context, want Content) error {
	err := m.all.client.Delete(ctx, m.To().Chat, m.ID())
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.BadRequest, tgapi.MessageGone: // too old to be deleted, or deleted already
		if want.Text.Text != "" {
			m.mu.Lock()
			m.tried |= undeletable
			m.mu.Unlock()
			return outbox.ErrOtherForm
		}
	case tgapi.NoFault, tgapi.ChatGone, tgapi.TopicGone, tgapi.NotModified, tgapi.TooLong, tgapi.Conflict:
	default:
		return err
	}
	return m.save(context.WithoutCancel(ctx), orchestrator.Removed, 0)
}

// dressed is a text as it is sent: with a word about its topic, or without its formatting.
func (m *Message) dressed(t render.Text) render.Text {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tried&withoutFormatting != 0 {
		t.Entities = nil
	}
	if m.tried&inMainTopic != 0 {
		if noted := render.Concat(render.Styled(render.Italic, m.all.lang.Text("common.moved")+"\n\n"), t); render.Fits(noted, render.MessageLimit) {
			return noted
		}
	}
	return t
}
