package card

import (
	"context"
	"errors"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

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

// planLocked reports whether the card must request an edit from the outbox now. It also sets the timer for the next
// check.
func (c *card) planLocked(now time.Time) (post bool) {
	if at, ok := c.dueLocked(); ok && !c.pace.queued && !c.past.replaying && !now.Before(at) {
		c.pace.queued = true
		post = true
	}
	c.armLocked(now)
	return post
}

// armLocked sets the timer to the next time at which the card needs an edit or a typing indicator.
func (c *card) armLocked(now time.Time) {
	next := c.pace.typing
	if at, ok := c.dueLocked(); ok && !c.pace.queued && at.Before(next) {
		next = at
	}
	c.alarm.set(next, now)
}

// dueLocked returns the time at which the card next needs an edit, or false if no edit is planned. Some content changes
// without an event, for example the running time of a tool.
func (c *card) dueLocked() (time.Time, bool) {
	switch {
	case c.past.replaying:
		return c.past.quiet(), true
	case c.pace.news != noNews:
		return c.pace.due(), true // the request at this time also repeats an expiring draft
	}
	at, ok := c.passesLocked()
	if fades, shown := c.draftExpiresLocked(); shown && (!ok || fades.Before(at)) {
		at, ok = fades, true
	}
	return c.pace.notBefore(at), ok
}

// passesLocked returns the next time at which the card changes only because time passes, for example because it shows
// a running time. It returns false if there is no such time.
func (c *card) passesLocked() (time.Time, bool) {
	if at, ok := c.doc.nextElapse(c.newestLocked()); ok {
		return at, true
	}
	return c.silenceLocked()
}

// silenceLocked returns the time at which the last line of the card must show how long the agent has sent nothing. It
// returns false while a tool is running, and while the turn is paused or waits for a user.
func (c *card) silenceLocked() (time.Time, bool) {
	if c.doc.running > 0 || c.doc.wait.state == waitAsked || c.doc.wait.state == waitPaused {
		return time.Time{}, false
	}
	silence := c.cards.look().StatusAfter
	if waited, ok := c.doc.wait.nextClock(c.clockStep()); ok {
		silence = waited
	}
	return c.pace.moved.Add(silence), true
}

func (c *card) clockStep() time.Duration {
	if outbox.ChatOf(c.turn.Prompt.Conversation.Chat).Group {
		return clockGroup
	}
	return clockPrivate
}

// newestLocked returns the index of the first segment in the last message.
func (c *card) newestLocked() int {
	if len(c.starts) == 0 {
		return 0
	}
	return c.starts[len(c.starts)-1].segment
}

// postCall asks the outbox to update the card as soon as Telegram's rate limit allows. It does nothing if post is
// false.
func (c *card) postCall(post bool) {
	if !post {
		return
	}
	c.cards.opts.Outbox.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(c.messages.where().Chat), Delivery: outbox.Newest, Priority: c.priority(),
		Key: cardKey(c.turn.ID), Run: c.makeCall,
	}, c.callEnded)
}

// priority returns the priority of the next request. The first text is urgent: users should see it within a second.
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

// makeCall makes one Telegram request that brings the chat closer to the current document.
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

// advanceUnlock does the work of makeCall. The caller must hold c.mu; advanceUnlock unlocks it.
func (c *card) advanceUnlock(ctx context.Context) error {
	now := time.Now()
	c.doc.elapse(now, c.newestLocked())
	if at, ok := c.silenceLocked(); ok && c.pace.news == noNews && !now.Before(at) {
		c.doc.silence(now.Sub(c.pace.moved), c.clockStep())
	}
	c.pace.growing.show()
	texts, rich := c.liveLocked(now)
	last := len(texts) - 1
	newest := c.snapshotLocked(last, texts[last], rich)
	lines := c.doc.liveLines(now)
	texts[last] = withLive(newest.text, lines)
	wants := contents{texts: texts, buttons: c.liveButtonsLocked(now), rich: rich.withTexts(lines)}.perMessage()
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
	p := c.messages.begin(act, c.pace.calls) // call begin before the unlock, so that Finish knows about the request
	c.mu.Unlock()
	if act.step == message.Send && (act.part > 0 || len(newest.lead) > 0) {
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
		c.pace.news = urgentNews // Telegram rejected the message, so send it in another form
	}
	keep := act.part == last && c.pace.snapshot(last, time.Now())
	c.mu.Unlock()
	if keep {
		c.saveSnapshot(ctx, newest)
	}
	return nil
}

// draftsLocked reports whether the card shows its last message as a draft. It returns false after the real message was
// sent. It also returns false while the turn waits for a user, because Telegram may remove a draft during this time.
func (c *card) draftsLocked() bool {
	if c.doc.wait.state == waitAsked || c.doc.wait.state == waitPaused || isRich(c.turn) {
		return false
	}
	return c.messages.opened() <= max(len(c.starts)-1, 0) && c.cards.draftsIn(c.turn.Prompt.Conversation.Chat)
}

func (c *card) intervalLocked() time.Duration {
	switch {
	case outbox.ChatOf(c.turn.Prompt.Conversation.Chat).Group:
		return c.cards.look().IntervalGroup
	case c.draftsLocked():
		return draftInterval
	}
	return c.cards.look().IntervalPrivate
}

// draftExpiresLocked returns when the draft must be repeated, or false if the card shows no draft.
func (c *card) draftExpiresLocked() (at time.Time, ok bool) {
	if !c.draftsLocked() {
		return time.Time{}, false
	}
	return c.messages.draftExpires()
}

// draftUnlock shows the last message as a draft, and stores its content for the next process. The caller must hold
// c.mu; draftUnlock unlocks it.
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

// liveLocked renders the document of a running turn, either as texts or as one rich message.
func (c *card) liveLocked(now time.Time) ([]render.Text, richContent) {
	texts, _ := c.layoutLocked(render.FullMessage)
	if !c.richLocked() {
		return texts, richContent{}
	}
	c.starts = c.starts[:1]
	blocks, cut := c.doc.blocks()
	rich := richContent{blocks, cut}
	if rich.Blocks == nil {
		return texts[:1], richContent{Blocks: []render.Block{}}
	}
	return []render.Text{rich.text(texts)}, rich
}

// liveButtonsLocked returns the buttons of a running card. The first text of an answer gets no buttons, because it may
// already be the whole answer. But it gets buttons if a tool is running or the turn waits.
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
		limited := orchestrator.Recovery{At: at}
		if c.turn.MayRunLater() {
			limited.Offer = append(limited.Offer, orchestrator.ActionLater)
		}
		for _, account := range c.doc.turn.others {
			limited.Offer = append(limited.Offer, orchestrator.ActionAccount(account))
		}
		k = append(k, buttons.Offer(c.turn.ID, limited)...)
	}
	return k
}

// withLive appends the lines that liveLines returns to the text of the last message, if they fit.
func withLive(t, line render.Text) render.Text {
	if t.Text == "" {
		return line
	}
	t, _ = below(t, line)
	return t
}

// below appends a line to the text of a message. It returns the text unchanged and false if the line does not fit.
func below(t, line render.Text) (all render.Text, fits bool) {
	if line.Text == "" {
		return t, true
	}
	if all = render.Concat(t, render.Plain("\n\n"), line); render.Fits(all, render.MessageLimit) {
		return all, true
	}
	return t, false
}

func (c *card) callEnded(err error) {
	now := time.Now()
	c.mu.Lock()
	c.pace.callEnded(err, now)
	post := false
	if !c.finished && !errors.Is(err, outbox.ErrClosed) { // do not edit after Finish, or if the outbox is closed
		post = c.planLocked(now)
	}
	c.mu.Unlock()
	c.postCall(post)
}

var _ orchestrator.Card = (*card)(nil)
