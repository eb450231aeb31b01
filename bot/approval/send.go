package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// step is the next call for a message.
type step int

const (
	stepNone step = iota
	stepSend
	stepNotice // says that the message may be missing
	stepEdit
)

func (s *Screen) nextLocked(e *entry) step {
	switch {
	case e.state == orchestrator.Pending && e.open():
		return stepSend
	case e.state == orchestrator.Unknown && e.message == 0 && e.open():
		return stepNotice
	case e.message > 0 && (e.state == orchestrator.Sent || e.state == orchestrator.Unknown):
		if t, k := s.viewLocked(e); e.shown != fingerprint(t, k) {
			return stepEdit
		}
	}
	return stepNone
}

// push posts the next call for an entry, one at a time. The call reads what it shows when the outbox makes it.
func (s *Screen) push(e *entry) {
	s.mu.Lock()
	if s.service == nil || e.busy {
		s.mu.Unlock()
		return
	}
	next := s.nextLocked(e)
	if next == stepNone {
		if !e.open() && s.entries[e.id] == e {
			delete(s.entries, e.id)
		}
		s.mu.Unlock()
		return
	}
	e.busy = true
	priority := outbox.Awaited
	if next == stepEdit && !e.open() {
		priority = outbox.Housekeeping
	}
	s.mu.Unlock()
	s.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(e.conv.Chat), Priority: priority, Key: "ask/" + string(e.id), Idempotent: next == stepEdit,
		Run: func(ctx context.Context) error { return s.call(ctx, e, next) },
	}, func(err error) { s.called(e, err) })
}

func (s *Screen) call(ctx context.Context, e *entry, next step) error {
	switch next {
	case stepEdit:
		return s.edit(ctx, e)
	case stepNotice:
		return s.sendNotice(ctx, e)
	}
	return s.send(ctx, e)
}

// Pauses before the screen repeats a call that failed. They double.
const (
	retryPause    = 5 * time.Second
	retryPauseMax = 5 * time.Minute
)

// called continues after a call.
func (s *Screen) called(e *entry, err error) {
	s.mu.Lock()
	e.busy = false
	pause := min(retryPause<<min(e.fails, 10), retryPauseMax)
	if e.fails++; err == nil {
		e.fails = 0
	}
	s.mu.Unlock()
	if err == nil {
		s.push(e)
		return
	}
	e.log.Warn("the chat does not show the state of an approval or a question", "err", err)
	if errors.Is(err, outbox.ErrClosed) {
		return // the next process shows it
	}
	// An agent waits for its user, and no other event may come that would repeat the call.
	time.AfterFunc(pause, func() { s.push(e) })
}

// send sends the message. The service knows before that the chat may have it, and after whether the chat has it.
func (s *Screen) send(ctx context.Context, e *entry) error {
	if err := s.load(ctx, e); err != nil {
		return err
	}
	s.mu.Lock()
	if !e.open() {
		s.mu.Unlock()
		return nil
	}
	m := tgapi.Message{To: e.shownIn()}
	m.Text, m.Keyboard = s.viewLocked(e)
	approval := e.approval
	s.mu.Unlock()
	m.ReplyTo = s.promptOf(ctx, approval)
	if err := s.move(ctx, e, orchestrator.Sending, 0); err != nil {
		s.mu.Lock()
		e.state = orchestrator.Pending // it did not leave
		s.mu.Unlock()
		return err
	}
	id, err := s.client.Send(ctx, m)
	keep := context.WithoutCancel(ctx)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault:
		s.showed(e, m.Text, m.Keyboard)
		return s.move(keep, e, orchestrator.Sent, id)
	case tgapi.UnknownFault:
		e.log.Warn("an approval or a question may or may not have arrived in the chat", "err", err)
		return s.move(keep, e, orchestrator.Unknown, 0)
	case tgapi.TopicGone, tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.MessageGone:
		return s.refused(keep, e, f, err)
	default:
		return errors.Join(err, s.move(keep, e, orchestrator.Pending, 0))
	}
}

// refused picks another way to show what Telegram refused, or gives up.
func (s *Screen) refused(ctx context.Context, e *entry, f tgapi.Fault, err error) error {
	s.mu.Lock()
	state := orchestrator.Pending
	switch {
	case f.Kind == tgapi.TopicGone && e.shownIn().Topic != 0:
		e.tried |= inMainTopic
	case (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong) && e.tried&withoutFormatting == 0:
		e.tried |= withoutFormatting
	default:
		state = orchestrator.Failed
		e.log.Error("an approval or a question cannot be shown; it is denied when its time is over", "err", err)
	}
	s.mu.Unlock()
	return s.move(ctx, e, state, 0)
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

// drawMissing is the notice in place of an approval that the chat may or may not show. The screen does not send the approval again
// blindly: a button turns the notice into it.
func drawMissing(a orchestrator.Approval) (render.Text, tgapi.Keyboard) {
	return render.Plain("⚠️ " + render.AgentName(a.Agent) + " waits for a decision. The connection broke as I sent what it is about, so that may be missing here."),
		keyboard(a, []button{{"👁 Show it", opShow}})
}

// sendNotice sends the notice, at most once.
func (s *Screen) sendNotice(ctx context.Context, e *entry) error {
	s.mu.Lock()
	if !e.open() {
		s.mu.Unlock()
		return nil
	}
	m := tgapi.Message{To: e.shownIn()}
	m.Text, m.Keyboard = s.viewLocked(e)
	s.mu.Unlock()
	if err := s.record(ctx, e, orchestrator.Sending, noNotice); err != nil {
		return err
	}
	id, err := s.client.Send(ctx, m)
	keep := context.WithoutCancel(ctx)
	switch tgapi.FaultOf(err).Kind {
	case tgapi.NoFault:
		s.showed(e, m.Text, m.Keyboard)
		return s.move(keep, e, orchestrator.Unknown, id)
	case tgapi.RateLimited, tgapi.ServerFault, tgapi.NotSent, tgapi.Cancelled, tgapi.Unauthorized, tgapi.Conflict:
		return errors.Join(err, s.move(keep, e, orchestrator.Unknown, 0))
	}
	e.log.Warn("it is unknown whether the chat shows an approval or a question", "err", err)
	return s.move(keep, e, orchestrator.Unknown, noNotice)
}

// edit changes the message to the state of the approval.
func (s *Screen) edit(ctx context.Context, e *entry) error {
	if err := s.load(ctx, e); err != nil {
		return err
	}
	s.mu.Lock()
	t, k := s.viewLocked(e)
	message := e.message
	s.mu.Unlock()
	if message <= 0 {
		return nil
	}
	err := s.client.Edit(ctx, e.conv.Chat, message, t, k)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault, tgapi.NotModified:
		s.showed(e, t, k)
		return nil
	case tgapi.MessageGone:
		return s.deleted(context.WithoutCancel(ctx), e)
	case tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.TopicGone:
		s.mu.Lock()
		again := e.tried&withoutFormatting == 0 && (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong)
		if again {
			e.tried |= withoutFormatting
		}
		s.mu.Unlock()
		if !again {
			e.log.Error("Telegram refused to edit an approval or a question", "err", err)
			s.showed(e, t, k)
		}
		return nil
	}
	return err
}

// deleted sends a message that a user deleted again, once, if the agent still waits.
func (s *Screen) deleted(ctx context.Context, e *entry) error {
	s.mu.Lock()
	state := orchestrator.Failed
	if e.open() && e.tried&sentTwice == 0 {
		state = orchestrator.Pending
	}
	e.tried |= sentTwice
	s.mu.Unlock()
	return s.move(ctx, e, state, 0)
}

func (s *Screen) showed(e *entry, t render.Text, k tgapi.Keyboard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.shown = fingerprint(t, k)
}

// move records the state of the message, here and in the service.
func (s *Screen) move(ctx context.Context, e *entry, state orchestrator.SendState, message int) error {
	s.mu.Lock()
	e.state, e.message = state, message
	s.mu.Unlock()
	return s.record(ctx, e, state, message)
}

func (s *Screen) record(ctx context.Context, e *entry, state orchestrator.SendState, message int) error {
	err := s.service.ApprovalShown(ctx, e.id, state, message)
	if err != nil && !errors.Is(err, orchestrator.ErrNoApproval) {
		return fmt.Errorf("record the message of an approval: %w", err)
	}
	return nil
}
