package card

import (
	"context"
	"errors"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// perform makes a call that was begun. It returns an error if the call may be made again as it is, or if no call can be
// made at all; everything else is settled.
func (s *messages) perform(ctx context.Context, act action, p *chatMessage) error {
	if act.kind == sendPart {
		if err := s.save(ctx, act.part, orchestrator.Sending, pack(p.reach)); err != nil {
			s.set(func() { p.state = orchestrator.Pending })
			return err
		}
	}
	switch act.kind {
	case sendPart:
		return s.send(ctx, act, p)
	case editPart:
		t := s.dressed(p, act.want.text)
		err := s.client.Edit(ctx, s.where().Chat, act.message, t, act.want.buttons)
		return s.settleEdit(ctx, act, p, err)
	case deletePart:
		err := s.client.Delete(ctx, s.where().Chat, act.message)
		return s.settleDelete(ctx, act, p, err)
	}
	return nil
}

func (s *messages) send(ctx context.Context, act action, p *chatMessage) error {
	m := tgapi.Message{
		To: s.where(), Text: s.dressed(p, act.want.text), Keyboard: act.want.buttons,
		Silent: act.part > 0, // one message, one sound
	}
	if act.part == 0 {
		m.ReplyTo = s.replyTo
	}
	id, err := s.client.Send(ctx, m)
	s.writing.Lock()
	defer s.writing.Unlock()
	f := tgapi.FaultOf(err)
	switch f.Kind {
	case tgapi.NoFault:
		s.set(func() { p.state, p.message = orchestrator.Sent, id })
		s.showed(p, act.want)
		return s.saved(ctx, act.part, orchestrator.Sent, id)
	case tgapi.UnknownFault:
		s.log.Warn("a message may or may not have arrived", "turn", s.turn, "part", act.part, "err", err)
		s.set(func() { p.state = orchestrator.Unknown })
		return s.saved(ctx, act.part, orchestrator.Unknown, pack(p.reach))
	}
	// It is known not to have been sent. While it waits to be sent again a restart must know that too.
	s.set(func() { p.state = orchestrator.Pending })
	return s.refused(ctx, act, p, f, errors.Join(err, s.saved(ctx, act.part, orchestrator.Pending, 0)))
}

// refused settles what a refusal means; it returns err if the call may be made again as it is.
func (s *messages) refused(ctx context.Context, act action, p *chatMessage, f tgapi.Fault, err error) error {
	switch f.Kind {
	case tgapi.TopicGone:
		if s.leaveTopic(p) {
			return nil
		}
		s.lost(err)
	case tgapi.ChatGone:
		s.lost(err)
	case tgapi.TooLong, tgapi.BadRequest:
		if p.tried&withoutFormatting == 0 {
			s.log.Warn("Telegram refused a message; it goes out without formatting", "turn", s.turn, "err", err)
			s.set(func() { p.tried |= withoutFormatting })
			return nil
		}
		s.log.Error("Telegram refused a message", "turn", s.turn, "part", act.part, "err", err)
		s.set(func() { p.state = orchestrator.Failed })
		return s.saved(ctx, act.part, orchestrator.Failed, p.message)
	default:
		return err
	}
	return nil
}

func (s *messages) settleEdit(ctx context.Context, act action, p *chatMessage, err error) error {
	f := tgapi.FaultOf(err)
	switch f.Kind {
	case tgapi.NoFault, tgapi.NotModified:
		s.showed(p, act.want)
		return nil
	case tgapi.MessageGone:
		return s.deleted(ctx, act, p)
	}
	return s.refused(ctx, act, p, f, err)
}

// deleted handles a message that a user deleted: the card sends it again, once.
func (s *messages) deleted(ctx context.Context, act action, p *chatMessage) error {
	state := orchestrator.Pending
	s.set(func() {
		if p.tried&sentTwice != 0 {
			state, p.left = orchestrator.Failed, true
		}
		p.tried |= sentTwice
		p.state, p.message = state, 0
	})
	return s.saved(ctx, act.part, state, 0)
}

func (s *messages) settleDelete(ctx context.Context, act action, p *chatMessage, err error) error {
	f := tgapi.FaultOf(err)
	switch f.Kind {
	case tgapi.RateLimited, tgapi.ServerFault, tgapi.NotSent, tgapi.UnknownFault, tgapi.Cancelled, tgapi.Unauthorized, tgapi.OtherFault:
		return err
	}
	s.set(func() { p.state, p.message, p.left = orchestrator.Failed, 0, true })
	return s.saved(ctx, act.part, orchestrator.Failed, 0)
}

// leaveTopic makes the card go on in the chat's main topic; false if it is there already.
func (s *messages) leaveTopic(p *chatMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conv.Topic == 0 {
		return false
	}
	s.conv.Topic = 0
	p.tried |= inMainTopic
	return true
}

// dressed is a part's text as it is sent: with a word about its topic, or without its formatting.
func (s *messages) dressed(p *chatMessage, t render.Text) render.Text {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.tried&withoutFormatting != 0 {
		t.Entities = nil
	}
	if p.tried&inMainTopic != 0 {
		if noted := render.Concat(render.Styled(render.Italic, render.MovedNote), t); render.Fits(noted, render.MessageLimit) {
			return noted
		}
	}
	return t
}

func (s *messages) showed(p *chatMessage, w want) {
	s.set(func() { p.shown, p.buttons, p.known = w.text, w.buttons, true })
}

func (s *messages) lost(err error) {
	s.log.Warn("the chat cannot be reached; the outcome is not shown", "turn", s.turn, "chat", s.where().Chat, "err", err)
	s.set(func() { s.gone = true })
}
