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

// What changes a card after its turn has ended, because a user or a job asked for it.

// How long the caller waits.
const (
	showPatience   = 3 * time.Second // a pressed button
	remarkPatience = time.Second     // a job, which comes again
)

// ErrNotYet says that the chat does not show something yet. The work continues; ask again.
var ErrNotYet = errors.New("the chat does not show it yet")

// ErrBusy is the error for a user while a job changes the card: nothing was begun.
var ErrBusy = errors.New("the card is being changed")

// activity is what changes a card after its turn ended.
type activity int

const (
	idle      activity = iota
	showing            // again, for a user
	remarking          // for a job
)

// attend has f, which makes calls about the card of a turn, run to its end, and waits for that at most so long. It
// gives ErrNotYet if that was too short, or if something else is being done to the card.
func (c *Cards) attend(ctx context.Context, turn cli.TurnID, what activity, patience time.Duration, f func(context.Context) error) error {
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

// ShowAgain sends a turn's card once more, from where a part of it may be missing, because a user asked for it. What
// takes longer continues after the return. Until it ends another call does nothing. ErrBusy if
// a job is changing the card.
func (c *Cards) ShowAgain(ctx context.Context, t orchestrator.Turn) error {
	err := c.attend(ctx, t.ID, showing, showPatience, func(ctx context.Context) error { return c.showAgain(ctx, t) })
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
	if err := s.forget(ctx, content.first, orchestrator.Unknown, orchestrator.Failed); err != nil {
		return err
	}
	if err := s.notice.Reset(ctx, orchestrator.Pending); err != nil {
		return err
	}
	return c.conclude(ctx, s, content)
}

// forget makes a card's messages be sent anew from the first one whose state is missing, since what came after that would
// stand above it. What is in the chat of them stays there.
func (s *messages) forget(ctx context.Context, first int, missing ...orchestrator.SendState) error {
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
	// The last one first: if ductor dies on the way, the next call finds the same.
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

// Remark puts a line below the outcome of a turn that was delivered, in place of the one before. It edits the message
// that is there, which notifies no user; one that is gone is sent anew, once. It returns when the chat shows it, or
// with ErrNotYet: doing it again is the same as doing it once.
func (c *Cards) Remark(ctx context.Context, t orchestrator.Turn, line string) error {
	return c.attend(ctx, t.ID, remarking, remarkPatience, func(ctx context.Context) error {
		s, saved, err := c.load(ctx, t)
		if err != nil {
			return err
		}
		content := c.resume(t, s, saved)
		content.remark = line
		s.trust(content)
		return c.conclude(ctx, s, content)
	})
}

// lateWait is how long after its outcome was shown a card takes more of the answer.
const lateWait = 10 * time.Second

func (c *Cards) remember(k *card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished[k.turn.ID] = k
	time.AfterFunc(lateWait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.finished, k.turn.ID)
	})
}

// Extend adds what the answer of a turn has at its end to the card, by an edit; see orchestrator.Chat.
func (c *Cards) Extend(ctx context.Context, t orchestrator.Turn) error {
	c.mu.Lock()
	k := c.finished[t.ID]
	c.mu.Unlock()
	if k == nil {
		return orchestrator.ErrCannotAmend
	}
	return k.Amend(ctx, t.Outcome)
}

// trust takes all but the last of a card's messages for what they are to be: they are not touched.
func (s *messages) trust(content contents) {
	wants := content.on(s).wants() // it takes the lock too
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.parts[:max(min(len(s.parts), len(wants)-1), 0)] {
		if p.State() == orchestrator.Sent {
			p.Trust(wants[i])
		}
	}
}

// withRemark puts a line below a message, if there is room for it.
func withRemark(t render.Text, line string) render.Text {
	if t.Text != "" {
		t, _ = below(t, remarkText(line))
	}
	return t
}

func remarkText(line string) render.Text { return render.Styled(render.Italic, line) }

// Say sends a message in the place of the card of a turn that never was, at most once for a turn. It returns when it is
// sent, or with ErrNotYet: saying it again is the same as saying it once.
func (c *Cards) Say(ctx context.Context, t orchestrator.Turn, text string, k tgapi.Keyboard) error {
	return c.attend(ctx, t.ID, remarking, remarkPatience, func(ctx context.Context) error {
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
