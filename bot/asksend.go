package bot

import (
	"context"
	"errors"
	"fmt"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// viewLocked is what the card's message is to show now.
func (b *askBoard) viewLocked(c *askCard) (render.Text, tgapi.Keyboard) {
	var t render.Text
	var k tgapi.Keyboard
	if c.state == orchestrator.Unknown && c.open() {
		t, k = askMissing(c.ask)
	} else {
		t, k = drawAsk(c.ask, c.draft, b.decider(c.ask))
	}
	if c.moved {
		if noted := render.Concat(render.Styled(render.Italic, render.MovedNote), t); render.Fits(noted, render.MessageLimit) {
			t = noted
		}
	}
	if c.plain {
		t.Entities = nil
	}
	return t, k
}

// decider names who decided where several people read along.
func (b *askBoard) decider(a orchestrator.Ask) string {
	if a.By == 0 || !outbox.ChatOf(a.Conversation.Chat).Group {
		return ""
	}
	return b.names[a.By]
}

func askPrint(t render.Text, k tgapi.Keyboard) string { return render.Fingerprint(t) + fmt.Sprint(k) }

// send sends the card. The desk knows before that it may be in the chat, and after whether it is.
func (b *askBoard) send(ctx context.Context, c *askCard) error {
	if err := b.load(ctx, c); err != nil {
		return err
	}
	b.mu.Lock()
	if !c.open() {
		b.mu.Unlock()
		return nil
	}
	m := tgapi.Message{To: c.place()}
	m.Text, m.Keyboard = b.viewLocked(c)
	ask := c.ask
	b.mu.Unlock()
	m.ReplyTo = b.answers(ctx, ask)
	if err := b.move(ctx, c, orchestrator.Sending, 0); err != nil {
		b.mu.Lock()
		c.state = orchestrator.Pending // it did not leave
		b.mu.Unlock()
		return err
	}
	id, err := b.client.Send(ctx, m)
	keep := context.WithoutCancel(ctx)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault:
		b.showed(c, m.Text, m.Keyboard)
		return b.move(keep, c, orchestrator.Sent, id)
	case tgapi.UnknownFault:
		c.log.Warn("what an agent asks may or may not have arrived", "err", err)
		return b.move(keep, c, orchestrator.Unknown, 0)
	case tgapi.TopicGone, tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.MessageGone:
		return b.refused(keep, c, f, err)
	default:
		return errors.Join(err, b.move(keep, c, orchestrator.Pending, 0))
	}
}

// refused settles that Telegram did not take the card: it goes out in another way, or not at all.
func (b *askBoard) refused(ctx context.Context, c *askCard, f tgapi.Fault, err error) error {
	b.mu.Lock()
	state := orchestrator.Pending
	switch {
	case f.Kind == tgapi.TopicGone && c.place().Topic != 0:
		c.moved = true
	case (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong) && !c.plain:
		c.plain = true
	default:
		state = orchestrator.Failed
		c.log.Error("what an agent asks cannot be shown; it is denied when its time is over", "err", err)
	}
	b.mu.Unlock()
	return b.move(ctx, c, state, 0)
}

// answers is the message that the card answers to: in a group several people ask at once.
func (b *askBoard) answers(ctx context.Context, a orchestrator.Ask) int {
	if !outbox.ChatOf(a.Conversation.Chat).Group {
		return 0
	}
	st, err := b.desk.Status(ctx, a.Conversation)
	if err != nil || st.Running == nil || st.Running.Turn != a.Turn {
		return 0
	}
	return st.Running.Message
}

// askMissing is the notice in place of an ask that may be in the chat or not. It is not sent again blindly:
// a button makes the notice the ask.
func askMissing(a orchestrator.Ask) (render.Text, tgapi.Keyboard) {
	return render.Plain("⚠️ " + render.AgentName(a.Agent) + " waits for a decision. The connection broke as I sent what it is about, so that may be missing here."),
		askKeyboard(a, []askButton{{"👁 Show it", askHere}})
}

// sendNotice sends the notice, at most once.
func (b *askBoard) sendNotice(ctx context.Context, c *askCard) error {
	b.mu.Lock()
	if !c.open() {
		b.mu.Unlock()
		return nil
	}
	m := tgapi.Message{To: c.place()}
	m.Text, m.Keyboard = b.viewLocked(c)
	b.mu.Unlock()
	if err := b.tell(ctx, c, orchestrator.Sending, noNotice); err != nil {
		return err
	}
	id, err := b.client.Send(ctx, m)
	keep := context.WithoutCancel(ctx)
	switch tgapi.FaultOf(err).Kind {
	case tgapi.NoFault:
		b.showed(c, m.Text, m.Keyboard)
		return b.move(keep, c, orchestrator.Unknown, id)
	case tgapi.RateLimited, tgapi.ServerFault, tgapi.NotSent, tgapi.Cancelled, tgapi.Unauthorized, tgapi.Conflict:
		return errors.Join(err, b.move(keep, c, orchestrator.Unknown, 0))
	}
	c.log.Warn("nobody knows whether the chat shows what an agent asks", "err", err)
	return b.move(keep, c, orchestrator.Unknown, noNotice)
}

// edit brings the message to show how the ask stands.
func (b *askBoard) edit(ctx context.Context, c *askCard) error {
	if err := b.load(ctx, c); err != nil {
		return err
	}
	b.mu.Lock()
	t, k := b.viewLocked(c)
	message := c.message
	b.mu.Unlock()
	if message <= 0 {
		return nil
	}
	err := b.client.Edit(ctx, c.conv.Chat, message, t, k)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault, tgapi.NotModified:
		b.showed(c, t, k)
		return nil
	case tgapi.MessageGone:
		return b.vanished(context.WithoutCancel(ctx), c)
	case tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.TopicGone:
		b.mu.Lock()
		again := !c.plain && (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong)
		c.plain = c.plain || again
		b.mu.Unlock()
		if !again {
			c.log.Error("Telegram refused an edit of what an agent asks", "err", err)
			b.showed(c, t, k)
		}
		return nil
	}
	return err
}

// vanished settles that a person deleted the message: while it is open it is sent anew, once.
func (b *askBoard) vanished(ctx context.Context, c *askCard) error {
	b.mu.Lock()
	state := orchestrator.Failed
	if c.open() && !c.reborn {
		state = orchestrator.Pending
	}
	c.reborn = true
	b.mu.Unlock()
	return b.move(ctx, c, state, 0)
}

func (b *askBoard) showed(c *askCard, t render.Text, k tgapi.Keyboard) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.shown = askPrint(t, k)
}

// move records what is known of the card's message, here and at the desk.
func (b *askBoard) move(ctx context.Context, c *askCard, state orchestrator.SendState, message int) error {
	b.mu.Lock()
	c.state, c.message = state, message
	b.mu.Unlock()
	return b.tell(ctx, c, state, message)
}

func (b *askBoard) tell(ctx context.Context, c *askCard, state orchestrator.SendState, message int) error {
	err := b.desk.AskShown(ctx, c.id, state, message)
	if err != nil && !errors.Is(err, orchestrator.ErrNoAsk) {
		return fmt.Errorf("record the message of an ask: %w", err)
	}
	return nil
}
