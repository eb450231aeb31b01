package card

import (
	"context"
	"errors"
	"slices"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// The rhythm of a running card.
const (
	secondAfter   = 300 * time.Millisecond // the first text is often short, so the next comes soon
	firstTyping   = 600 * time.Millisecond // an answer that begins sooner needs no typing before it
	typingEvery   = 4500 * time.Millisecond
	typingQuiet   = 2 * time.Second // text that just moved says as much as typing does
	snapshotEvery = 2 * time.Second
	slowestRetry  = time.Minute
)

// tick is called by the timer.
func (c *card) tick() {
	now := time.Now()
	c.mu.Lock()
	c.wakes = time.Time{}
	if c.finished {
		c.mu.Unlock()
		return
	}
	typing := !now.Before(c.typing)
	if typing {
		c.typing = now.Add(typingEvery)
		typing = now.Sub(c.last) >= typingQuiet
	}
	if c.past.replaying && !now.Before(c.past.quiet()) {
		c.caughtUpLocked(now)
	}
	post := c.planLocked(now)
	c.mu.Unlock()
	c.post(post)
	if typing {
		c.postTyping()
	}
}

// planLocked says whether a call is to be posted now, and sets the timer for what comes later.
func (c *card) planLocked(now time.Time) (post bool) {
	if at, ok := c.dueLocked(); ok && !c.queued && !c.past.replaying && !now.Before(at) {
		c.queued = true
		post = true
	}
	c.armLocked(now)
	return post
}

// armLocked sets the timer to the next moment at which something is to be done.
func (c *card) armLocked(now time.Time) {
	next := c.typing
	if at, ok := c.dueLocked(); ok && !c.queued && at.Before(next) {
		next = at
	}
	// A timer that is set for too early is left: there are many events until it fires, and then it looks again.
	if !c.wakes.IsZero() && !next.Before(c.wakes) {
		return
	}
	c.wakes = next
	c.timer.Reset(max(next.Sub(now), 0))
}

// dueLocked is when the next call is due, if one is.
func (c *card) dueLocked() (time.Time, bool) {
	status := c.moved.Add(c.cards.opts.StatusAfter)
	if c.past.replaying {
		return c.past.quiet(), true
	}
	if !c.dirty {
		if at, ok := c.doc.nextElapse(c.newestLocked()); ok {
			return later(at, c.last.Add(c.interval)), true
		}
		if c.doc.running > 0 || c.doc.wait.state == waitAsked {
			return time.Time{}, false
		}
		if waited, ok := c.doc.wait.nextClock(c.clockStep()); ok {
			status = c.moved.Add(waited)
		}
		return later(status, c.last.Add(c.interval)), true
	}
	var earliest time.Time
	switch {
	case c.fails > 0:
		earliest = c.last.Add(min(c.interval<<min(c.fails, 10), slowestRetry))
	case c.calls == 0:
		return time.Time{}, true
	case c.calls == 1:
		earliest = c.last.Add(min(secondAfter, c.interval))
	default:
		earliest = c.last.Add(c.interval)
	}
	if at, ok := c.pacer.Due(); ok && !c.urgent && at.After(earliest) {
		// A good moment is worth waiting for, but text that flows without one is shown all the same.
		if latest := earliest.Add(c.interval / 2); at.After(latest) {
			at = latest
		}
		earliest = at
	}
	return earliest, true
}

// clockStep is how far apart the moves of the clock are.
func (c *card) clockStep() time.Duration {
	if outbox.ChatOf(c.turn.Prompt.Conversation.Chat).Group {
		return clockGroup
	}
	return clockPrivate
}

// newestLocked is the segment that the newest message begins with.
func (c *card) newestLocked() int {
	if len(c.starts) == 0 {
		return 0
	}
	return c.starts[len(c.starts)-1].segment
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// post hands a call to the outbox, which runs it when there is budget.
func (c *card) post(post bool) {
	if !post {
		return
	}
	c.cards.opts.Outbox.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(c.turn.Prompt.Conversation.Chat), Delivery: outbox.Newest, Priority: c.priority(), Key: cardKey(c.turn.ID), Run: c.step,
	}, c.stepped)
}

// priority of the next call: the first text comes within a second.
func (c *card) priority() outbox.Priority {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == 0 {
		return outbox.Urgent
	}
	return outbox.Streaming
}

func (c *card) postTyping() {
	place := c.messages.where()
	c.cards.opts.Outbox.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(place.Chat), Delivery: outbox.Optional, Priority: outbox.Sign, Idempotent: true,
		Run: func(ctx context.Context) error { return c.cards.opts.Client.Typing(ctx, place) },
	}, nil)
}

// step makes one call that brings the chat closer to the document as it is now.
func (c *card) step(ctx context.Context) error {
	if err := c.recall(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	if c.finished || c.past.replaying {
		c.mu.Unlock()
		return outbox.ErrNotNeeded
	}
	return c.advanceUnlock(ctx)
}

// advanceUnlock is step for a caller that holds the lock of the card; it unlocks.
func (c *card) advanceUnlock(ctx context.Context) error {
	now := time.Now()
	c.doc.elapse(now, c.newestLocked())
	if silent := now.Sub(c.moved); !c.dirty && c.doc.running == 0 && silent >= c.cards.opts.StatusAfter {
		c.doc.silence(silent, c.clockStep())
	}
	c.pacer.Take()
	texts, _ := c.layoutLocked(render.FullMessage)
	last := len(texts) - 1
	newest := texts[last]
	texts[last] = withLive(newest, c.doc.liveLines(now))
	wants := contents{texts: texts}.wants()
	act, more := c.messages.next(0, wants, false)
	c.dirty, c.urgent = more, more
	if act.kind == nothing {
		c.mu.Unlock()
		return outbox.ErrNotNeeded
	}
	c.last = now
	c.calls++
	if act.kind == sendPart {
		act.want.reach = c.doc.reach(c.starts, act.part)
	}
	starts := slices.Clone(c.starts)
	p := c.messages.begin(act, c.calls) // before Finish can ask what is on its way
	c.mu.Unlock()
	if act.kind == sendPart && act.part > 0 {
		c.messages.keep(ctx, snapshot{part: act.part - 1, text: texts[act.part-1], starts: starts})
	}
	if act.kind == editPart {
		if err := c.messages.disown(ctx, act.part); err != nil {
			return err
		}
	}
	if err := c.messages.perform(ctx, act, p); err != nil {
		return err
	}
	if left, _ := c.messages.next(0, wants, false); left.kind != nothing {
		c.mu.Lock()
		c.dirty, c.urgent = true, true // it is to be sent in another way
		c.mu.Unlock()
	}
	if act.part == last && c.snapshotDue(last) {
		c.messages.keep(ctx, snapshot{part: last, text: newest, starts: starts})
	}
	return nil
}

// snapshotDue says that it is time to store what the newest message shows, so that after a crash it can be
// marked as interrupted without losing its text. That may miss what changed in the last seconds.
func (c *card) snapshotDue(part int) bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.saved) < snapshotEvery && part == c.savedPart {
		return false
	}
	c.saved, c.savedPart = now, part
	return true
}

// withLive puts what goes on below the newest message, if there is room for it.
func withLive(t, line render.Text) render.Text {
	if line.Text == "" {
		return t
	}
	if t.Text == "" {
		return line
	}
	if all := render.Concat(t, render.Plain("\n\n"), line); render.Fits(all, render.MessageLimit) {
		return all
	}
	return t
}

// stepped is called when a call is decided.
func (c *card) stepped(err error) {
	now := time.Now()
	c.mu.Lock()
	c.queued = false
	if err == nil {
		c.fails = 0
	} else {
		c.fails, c.last, c.dirty, c.urgent = c.fails+1, now, true, true
	}
	post := false
	if !c.finished && !errors.Is(err, outbox.ErrClosed) { // then only Finish can still show something
		post = c.planLocked(now)
	}
	c.mu.Unlock()
	c.post(post)
}

var _ orchestrator.Card = (*card)(nil)
