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

// This file changes cards after their turns have ended, at the request of a user or a job.

// How long a caller waits for a change.
const (
	showPatience   = 3 * time.Second // for a button press
	remarkPatience = time.Second     // for a job, which tries again later
)

// ErrNotYet means that the chat does not show the change yet. The work continues, and the caller may call again.
var ErrNotYet = errors.New("the chat does not show it yet")

// ErrBusy means that a job is changing the card. The call started nothing.
var ErrBusy = errors.New("the card is being changed")

// activity is a change to a card after its turn ended.
type activity int

const (
	idle      activity = iota
	showing            // ShowAgain sends the card again
	remarking          // Remark adds a line
)

// runExclusively runs f, which makes calls for a turn's card. f runs to its end, but runExclusively waits for it only
// for patience. It returns ErrNotYet if f needs longer, or if another activity is changing the card.
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

// ShowAgain sends a turn's card again for a user, from the first message that may be missing. If this takes long, the
// work continues after ShowAgain has returned, and further calls do nothing until it has ended. ShowAgain returns
// ErrBusy if a job is changing the card.
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

// detachFrom detaches the card from its messages, from the first one with a state in missing, so that the card sends
// them again. It includes the later messages, which would otherwise stand above the first. Messages in the chat stay
// there.
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
	// Detach from the last message backwards. If ductor dies halfway, the next call starts at the same message again.
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

// Remark sets the line below the outcome of a delivered turn, and replaces the previous line. It edits the existing
// message, so users get no notification. If that message is gone, Remark sends it again, once. Remark returns when
// the chat shows the line, or ErrNotYet. A second call with the same line has no effect.
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

// lateWait limits how long after its outcome a card accepts more text of the answer.
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

// Extend appends late text to the answer on the card; see orchestrator.Chat.
func (c *Cards) Extend(ctx context.Context, t orchestrator.Turn) error {
	c.mu.Lock()
	k := c.finished[t.ID]
	c.mu.Unlock()
	if k == nil {
		return orchestrator.ErrCannotAmend
	}
	return k.Amend(ctx, t.Outcome)
}

// assumeShown marks all messages of a card except the last as up to date, so that no call changes them.
func (s *messages) assumeShown(content contents) {
	wants := content.forChat(s).perMessage() // forChat takes the lock too
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts[:max(min(len(s.parts), len(wants)-1), 0)] {
		if p.State() == orchestrator.Sent {
			p.AssumeShown(wants[i])
		}
	}
}

// withRemark appends a line to a message that has room for it.
func withRemark(t render.Text, line string) render.Text {
	if t.Text != "" {
		t, _ = below(t, remarkText(line))
	}
	return t
}

func remarkText(line string) render.Text { return render.Styled(render.Italic, line) }

// Say sends a message in place of the card of a turn that never ran, at most once for each turn. It returns when the
// message is sent, or ErrNotYet.
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
