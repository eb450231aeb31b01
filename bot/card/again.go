package card

import (
	"context"
	"errors"
	"slices"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// This file changes the card of a turn that has already ended, because a user pressed a button or a scheduled job adds
// a line.

const (
	showPatience   = 3 * time.Second // time limit of ShowAgain
	remarkPatience = time.Second     // time limit of Remark and Say; short, because scheduled jobs try again
)

// ErrNotYet means that Telegram has not confirmed a change to a card yet. The change continues in the background. The
// caller can repeat the call later to get the result.
var ErrNotYet = errors.New("the chat does not show it yet")

// ErrBusy means that a scheduled job is changing the card at the moment, so the call did nothing.
var ErrBusy = errors.New("the card is being changed")

// activity is the kind of change that is being made to the card of an ended turn.
type activity int

const (
	idle      activity = iota
	showing            // ShowAgain is sending the card again
	remarking          // Remark is adding a line below the final message
)

// runExclusively runs f in the background, and waits for the result. If f takes longer than patience, runExclusively
// returns ErrNotYet, and f continues.
//
// f changes the card of an ended turn. If another change to the card is in progress, runExclusively does not run f. It
// then returns ErrBusy if the caller is ShowAgain and the other change is a Remark. Otherwise it returns ErrNotYet.
func (c *Cards) runExclusively(ctx context.Context, turn cli.TurnID, what activity, patience time.Duration,
	f func(context.Context) error) error {
	switch busy := c.claim(turn, what); {
	case busy == remarking && what == showing:
		return ErrBusy
	case busy != idle:
		return ErrNotYet
	}
	done := make(chan error, 1)
	started := c.opts.Outbox.Attend(func() {
		defer c.release(turn)
		err := f(context.WithoutCancel(ctx))
		if err != nil {
			c.opts.Log.Warn("change what the chat shows of a turn", "turn", turn, "err", err)
		}
		done <- err
	})
	if !started {
		c.release(turn)
		return outbox.ErrClosed
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case err := <-done:
		return err
	case <-wait.C:
	case <-ctx.Done():
	}
	return ErrNotYet
}

// ShowAgain sends a turn's card again because a user asked for it. It starts with the first message that may be missing
// in the chat. After a few seconds, ShowAgain returns, and the work continues in the background. Further calls do
// nothing before this work is done. ShowAgain returns ErrBusy if a scheduled job is changing the card.
func (c *Cards) ShowAgain(ctx context.Context, t orchestrator.Turn) error {
	err := c.runExclusively(ctx, t.ID, showing, showPatience, func(ctx context.Context) error {
		return c.showAgain(ctx, t)
	})
	if errors.Is(err, ErrNotYet) {
		return nil
	}
	return err
}

func (c *Cards) showAgain(ctx context.Context, t orchestrator.Turn) error {
	s, saved, err := c.load(ctx, t)
	if err != nil {
		return err
	}
	content := c.resume(t, s, saved)
	if err := s.detachFrom(ctx, content.first, orchestrator.Unknown, orchestrator.Failed); err != nil {
		return err
	}
	if err := s.notice.Reset(ctx, orchestrator.Pending); err != nil {
		return err
	}
	return c.conclude(ctx, s, content)
}

// detachFrom makes the card send messages again that may be missing in the chat. It searches for the first message with
// one of the given states. The card sends this message again, and all messages after it, because they must appear below
// it. Messages with an index below first are not sent again. The old messages stay in the chat.
func (s *messages) detachFrom(ctx context.Context, first int, states ...orchestrator.SendState) error {
	if slices.Contains(states, s.file.State()) {
		if err := s.file.Reset(ctx, orchestrator.Pending); err != nil {
			return err
		}
	}
	from := slices.IndexFunc(s.parts, func(p *part) bool { return slices.Contains(states, p.State()) })
	if from < 0 {
		return nil
	}
	from = max(first, from)
	// If ductor crashes in this loop, the next call must find the same value of from. So the loop resets the first
	// message last.
	for _, p := range slices.Backward(s.parts[min(from, len(s.parts)):]) {
		if st := p.State(); st != orchestrator.Sent && !slices.Contains(states, st) {
			continue
		}
		if err := p.Reset(ctx, orchestrator.Pending); err != nil {
			return err
		}
	}
	return nil
}

// Remark shows a line below a turn's final message. It replaces the line of an earlier call. Remark edits the existing
// message, so users get no notification. If a user deleted the message, Remark sends it again once. Remark returns nil
// as soon as the chat shows the line, or ErrNotYet if this takes longer than a second. A second call with the same line
// changes nothing.
func (c *Cards) Remark(ctx context.Context, t orchestrator.Turn, line string) error {
	return c.runExclusively(ctx, t.ID, remarking, remarkPatience, func(ctx context.Context) error {
		s, saved, err := c.load(ctx, t)
		if err != nil {
			return err
		}
		content := c.resume(t, s, saved)
		content.remark = line
		s.assumeShown(content)
		return c.conclude(ctx, s, content)
	})
}

// lateWait is the time after the end of a turn in which Extend can still add text to the card of the turn.
const lateWait = 10 * time.Second

func (c *Cards) rememberFinished(k *card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished[k.turn.ID] = k
	time.AfterFunc(lateWait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.finished, k.turn.ID)
	})
}

// Extend implements orchestrator.Chat. It appends text that the agent sent after the end of the turn.
func (c *Cards) Extend(ctx context.Context, t orchestrator.Turn) error {
	c.mu.Lock()
	k := c.finished[t.ID]
	c.mu.Unlock()
	if k == nil {
		return orchestrator.ErrCannotAmend
	}
	return k.Amend(ctx, t.Outcome)
}

// assumeShown marks all messages except the last one as up to date, so that the caller edits only the last message.
func (s *messages) assumeShown(content contents) {
	wants := content.forChat(s).perMessage() // call forChat before the lock, because it locks s.mu too
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts[:max(min(len(s.parts), len(wants)-1), 0)] {
		if p.State() == orchestrator.Sent {
			p.AssumeShown(wants[i])
		}
	}
}

// withRemark appends a remark to the text of a message, if the text is not empty and has enough room.
func withRemark(t render.Text, line string) render.Text {
	if t.Text != "" {
		t, _ = below(t, remarkText(line))
	}
	return t
}

func remarkText(line string) render.Text { return render.Styled(render.Italic, line) }

// Say sends a message for a turn that never ran and therefore has no card. It sends at most one message per turn. Say
// returns nil as soon as the message is sent, or ErrNotYet if that takes longer.
func (c *Cards) Say(ctx context.Context, t orchestrator.Turn, text string, k tgapi.Keyboard) error {
	return c.runExclusively(ctx, t.ID, remarking, remarkPatience, func(ctx context.Context) error {
		s, saved, err := c.load(ctx, t)
		if err != nil {
			return err
		}
		content := contents{texts: []render.Text{render.Shorten(render.Plain(text), render.MessageLimit)}, buttons: k}
		if saved.Final {
			content = saved.contents("")
		}
		return c.conclude(ctx, s, content)
	})
}
