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

// This file changes the card of a turn that has already ended, because a user pressed a button or a scheduled job asked
// for it.

// These durations limit how long a caller waits until the chat shows a change.
const (
	showPatience   = 3 * time.Second // for a button press
	remarkPatience = time.Second     // for a scheduled job, which tries again later
)

// ErrNotYet means that the chat does not show the change yet. The work continues in the background, and the caller may
// call again to learn its result.
var ErrNotYet = errors.New("the chat does not show it yet")

// ErrBusy means that a scheduled job is changing the card at the moment, so the call did nothing.
var ErrBusy = errors.New("the card is being changed")

// activity is the kind of change that is being made to the card of an ended turn.
type activity int

const (
	idle      activity = iota
	showing            // ShowAgain sends the card again
	remarking          // Remark adds a line
)

// runExclusively runs f, which changes the card of an ended turn, in the background. It waits for f, but no longer than
// patience. It returns ErrNotYet if f needs more time, or if another change to the same card is in progress.
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
// in the chat. If this takes more than a few seconds, ShowAgain returns and the work continues in the background. Until
// it is done, further calls do nothing. ShowAgain returns ErrBusy if a scheduled job is changing the card.
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

// detachFrom makes the card forget its messages in the chat, so that it sends them again. It starts with the first
// message whose state is in missing and includes all later messages, because a message that is sent again appears below
// them. The old messages stay in the chat.
func (s *messages) detachFrom(ctx context.Context, first int, missing ...orchestrator.SendState) error {
	if slices.Contains(missing, s.file.State()) {
		if err := s.file.Reset(ctx, orchestrator.Pending); err != nil {
			return err
		}
	}
	from := slices.IndexFunc(s.parts, func(p *part) bool { return slices.Contains(missing, p.State()) })
	if from < 0 {
		return nil
	}
	from = max(first, from)
	// Start with the last message. If ductor crashes halfway, the next attempt then finds the same first message.
	for _, p := range slices.Backward(s.parts[min(from, len(s.parts)):]) {
		if st := p.State(); st != orchestrator.Sent && !slices.Contains(missing, st) {
			continue
		}
		if err := p.Reset(ctx, orchestrator.Pending); err != nil {
			return err
		}
	}
	return nil
}

// Remark sets a line below the result of a turn, and replaces the line of an earlier Remark. It edits the existing
// message, so users get no notification. If a user deleted that message, Remark sends it again, but only once. Remark
// returns nil as soon as the chat shows the line, or ErrNotYet if that takes longer. A second call with the same line
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

// lateWait is how long after the end of a turn its card still accepts more text of the answer.
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

// assumeShown marks all messages of a card except the last as up to date, so that only the last one is edited.
func (s *messages) assumeShown(content contents) {
	wants := content.forChat(s).perMessage() // before the lock, because forChat locks s.mu too
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts[:max(min(len(s.parts), len(wants)-1), 0)] {
		if p.State() == orchestrator.Sent {
			p.AssumeShown(wants[i])
		}
	}
}

// withRemark appends a remark below t, if t is not empty and has enough room.
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
