package card

import (
	"context"
	"errors"
	"slices"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// tick handles the timer.
func (c *card) tick() {
	now := time.Now()
	c.mu.Lock()
	c.alarm.rings = time.Time{}
	if c.finished {
		c.mu.Unlock()
		return
	}
	typing := c.pace.showTyping(now)
	if c.past.replaying && !now.Before(c.past.quiet()) {
		c.caughtUpLocked(now)
	}
	post := c.planLocked(now)
	c.mu.Unlock()
	c.postCall(post)
	if typing {
		c.postTyping()
	}
}

// planLocked reports whether to post a call now, and sets the timer for the next call.
func (c *card) planLocked(now time.Time) (post bool) {
	if at, ok := c.dueLocked(); ok && !c.pace.queued && !c.past.replaying && !now.Before(at) {
		c.pace.queued = true
		post = true
	}
	c.armLocked(now)
	return post
}

// armLocked sets the timer to the next time at which something is due.
func (c *card) armLocked(now time.Time) {
	next := c.pace.typing
	if at, ok := c.dueLocked(); ok && !c.pace.queued && at.Before(next) {
		next = at
	}
	c.alarm.set(next, now)
}

// dueLocked returns when the next call is due, or false if nothing waits to be shown.
func (c *card) dueLocked() (time.Time, bool) {
	at, ok := c.changesLocked()
	if fades, shown := c.draftExpiresLocked(); shown && (!ok || fades.Before(at)) {
		return fades, true
	}
	return at, ok
}

// changesLocked returns when the card's content next changes without an event, for example the running time of a
// tool. It returns false if the content will not change.
func (c *card) changesLocked() (time.Time, bool) {
	switch {
	case c.past.replaying:
		return c.past.quiet(), true
	case c.pace.news != noNews:
		return c.pace.due(), true
	}
	if at, ok := c.doc.nextElapse(c.newestLocked()); ok {
		return c.pace.notBefore(at), true
	}
	if c.doc.running > 0 || c.doc.wait.state == waitAsked || c.doc.wait.state == waitPaused {
		return time.Time{}, false
	}
	silence := c.cards.look().StatusAfter
	if waited, ok := c.doc.wait.nextClock(c.clockStep()); ok {
		silence = waited
	}
	return c.pace.notBefore(c.pace.moved.Add(silence)), true
}

// clockStep returns the time between two updates of a clock.
func (c *card) clockStep() time.Duration {
	if outbox.ChatOf(c.turn.Prompt.Conversation.Chat).Group {
		return clockGroup
	}
	return clockPrivate
}

// newestLocked returns the index of the first segment in the newest message.
func (c *card) newestLocked() int {
	if len(c.starts) == 0 {
		return 0
	}
	return c.starts[len(c.starts)-1].segment
}

// postCall passes a call to the outbox, which makes it when the chat has budget.
func (c *card) postCall(post bool) {
	if !post {
		return
	}
	c.cards.opts.Outbox.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(c.turn.Prompt.Conversation.Chat), Delivery: outbox.Newest, Priority: c.priority(),
		Key: cardKey(c.turn.ID), Run: c.makeCall,
	}, c.callEnded)
}

// priority returns the priority of the next call. The first text must appear within a second.
func (c *card) priority() outbox.Priority {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pace.calls == 0:
		return outbox.Urgent
	case c.draftsLocked():
		return outbox.Preview
	}
	return outbox.Streaming
}

func (c *card) postTyping() {
	conv := c.messages.where()
	c.cards.opts.Outbox.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(conv.Chat), Delivery: outbox.Optional, Priority: outbox.Indicator, Idempotent: true,
		Run: func(ctx context.Context) error { return c.cards.opts.Typing(ctx, conv) },
	}, nil)
}

// makeCall makes one call that brings the chat closer to the current document.
func (c *card) makeCall(ctx context.Context) error {
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

// advanceUnlock does the work of makeCall. The caller must hold the card's lock. advanceUnlock releases it.
func (c *card) advanceUnlock(ctx context.Context) error {
	now := time.Now()
	c.doc.elapse(now, c.newestLocked())
	if silent := now.Sub(c.pace.moved); c.pace.news == noNews && c.doc.running == 0 &&
		silent >= c.cards.look().StatusAfter {
		c.doc.silence(silent, c.clockStep())
	}
	c.pace.growing.show()
	texts, rich := c.liveLocked(now)
	last := len(texts) - 1
	newest := snapshot{part: last, unchanged: last, text: texts[last], starts: slices.Clone(c.starts), rich: rich}
	lines := c.doc.liveLines(now)
	texts[last] = withLive(newest.text, lines)
	wants := contents{texts: texts, buttons: c.liveButtonsLocked(now), rich: rich.with(lines)}.perMessage()
	drafts := c.draftsLocked()
	if drafts {
		wants = wants[:last]
	}
	c.pace.interval = c.intervalLocked()
	act, more := c.messages.next(0, wants, false)
	c.pace.news = noNews
	if more || drafts && act.step != message.None {
		c.pace.news = urgentNews
	}
	if act.step == message.None && !drafts {
		c.mu.Unlock()
		return outbox.ErrNotNeeded
	}
	c.pace.callStarted(now)
	if act.step == message.None {
		return c.draftUnlock(ctx, newest, texts[last])
	}
	if act.step == message.Send {
		act.want.Mark = pack(c.doc.reach(c.starts, act.part))
	}
	p := c.messages.begin(act, c.pace.calls) // before releasing the lock, so that Finish sees the call in flight
	c.mu.Unlock()
	if act.step == message.Send && act.part > 0 {
		c.saveSnapshot(ctx, newest.before(texts, act.part))
	}
	if act.step == message.Edit {
		if err := c.messages.forgetFingerprint(ctx, act.part); err != nil {
			return err
		}
	}
	if err := settled(c.messages.perform(ctx, act, p)); err != nil {
		return err
	}
	c.cards.reportTooOld(ctx, c.messages)
	c.cards.reportLost(ctx, c.messages, false)
	left, _ := c.messages.next(0, wants, false)
	c.mu.Lock()
	if left.step != message.None {
		c.pace.news = urgentNews // the next call uses another way to send
	}
	keep := act.part == last && c.pace.snapshot(last, time.Now())
	c.mu.Unlock()
	if keep {
		c.saveSnapshot(ctx, newest)
	}
	return nil
}

// draftsLocked reports whether the newest message is shown as a draft. Drafts end when the message is in the chat.
// They also end while the turn waits, because a wait can last longer than a draft.
func (c *card) draftsLocked() bool {
	if c.doc.wait.state == waitAsked || c.doc.wait.state == waitPaused || isRich(c.turn) {
		return false
	}
	return c.messages.opened() <= max(len(c.starts)-1, 0) && c.cards.draftsIn(c.turn.Prompt.Conversation.Chat)
}

// intervalLocked returns the shortest time between two calls.
func (c *card) intervalLocked() time.Duration {
	switch {
	case outbox.ChatOf(c.turn.Prompt.Conversation.Chat).Group:
		return c.cards.look().IntervalGroup
	case c.draftsLocked():
		return draftInterval
	}
	return c.cards.look().IntervalPrivate
}

// draftExpiresLocked returns when the draft must be repeated, or false if the chat shows no draft.
func (c *card) draftExpiresLocked() (at time.Time, ok bool) {
	if !c.draftsLocked() {
		return time.Time{}, false
	}
	return c.messages.draftExpires()
}

// draftUnlock shows the newest message as a draft, and stores its content for the next process. The caller must hold
// the card's lock. draftUnlock releases it.
func (c *card) draftUnlock(ctx context.Context, newest snapshot, t render.Text) error {
	c.mu.Unlock()
	refused, err := c.messages.showDraft(ctx, c.cards.opts.Draft, newest.part, t)
	if err != nil && refused == tgapi.NoFault {
		return err
	}
	c.mu.Lock()
	if refused != tgapi.NoFault {
		c.cards.refuseDrafts(c.turn.Prompt.Conversation.Chat, err)
		c.pace.news = urgentNews
	}
	keep := c.pace.snapshot(newest.part, time.Now())
	c.mu.Unlock()
	if keep {
		c.saveSnapshot(ctx, newest)
	}
	return nil
}

// liveLocked renders the growing document as texts, or as one rich message.
func (c *card) liveLocked(now time.Time) ([]render.Text, richContent) {
	texts, _ := c.layoutLocked(render.FullMessage)
	if !c.richLocked() {
		return texts, richContent{}
	}
	c.starts = c.starts[:1]
	blocks, cut := c.doc.blocks()
	rich := richContent{blocks, cut}
	if rich.Blocks == nil { // nothing is visible yet
		return texts[:1], richContent{Blocks: []render.Block{}}
	}
	return []render.Text{rich.text(texts)}, rich
}

// liveButtonsLocked returns the buttons of a running card. It returns none with the first text of an answer while the
// turn waits for nothing, because that text may already be the complete answer.
func (c *card) liveButtonsLocked(now time.Time) tgapi.Keyboard {
	buttons := c.cards.opts.Buttons(c.doc.lang)
	switch {
	case c.messages.opened() == 0 && c.doc.answer > 0 && c.doc.running == 0 && c.doc.wait.state == waitQuiet:
		return nil
	case c.doc.wait.state == waitPaused:
		return tgapi.Keyboard{{buttons.EndRetries(c.turn.ID), buttons.Stop(c.turn.ID)}}
	}
	k := tgapi.Keyboard{{buttons.Stop(c.turn.ID)}}
	if at := c.doc.turn.limits.Reset(now); !at.IsZero() && !orchestrator.IsJobTurn(c.turn.ID) {
		later := orchestrator.Recovery{Offer: []orchestrator.Action{orchestrator.ActionLater}, At: at}
		k = append(k, buttons.Offer(c.turn.ID, later)...)
	}
	return k
}

// withLive appends the live lines to the newest message if it has room.
func withLive(t, line render.Text) render.Text {
	if t.Text == "" {
		return line
	}
	t, _ = below(t, line)
	return t
}

// below appends a line to a message if the message has room. It ignores an empty line.
func below(t, line render.Text) (all render.Text, fits bool) {
	if line.Text == "" {
		return t, true
	}
	if all = render.Concat(t, render.Plain("\n\n"), line); render.Fits(all, render.MessageLimit) {
		return all, true
	}
	return t, false
}

// callEnded handles the result of a call.
func (c *card) callEnded(err error) {
	now := time.Now()
	c.mu.Lock()
	c.pace.callEnded(err, now)
	post := false
	if !c.finished && !errors.Is(err, outbox.ErrClosed) { // otherwise only Finish can show more
		post = c.planLocked(now)
	}
	c.mu.Unlock()
	c.postCall(post)
}

var _ orchestrator.Card = (*card)(nil)
