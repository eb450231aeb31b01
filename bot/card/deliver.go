package card

import (
	"context"
	"fmt"
	"reflect"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// contents describes the text, buttons and files of a card's messages. The field first is the index of the first
// described message. Messages before it do not change.
type contents struct {
	first         int
	strips        int // number of earlier messages whose buttons must be removed; their text is unknown
	texts         []render.Text
	buttons       tgapi.Keyboard
	remark        string // line below the last message; omitted if the message is full
	end           *ending
	file          string // file with the whole answer; empty if texts contain all of it
	rich          richContent
	richFile      string // file with the whole answer; empty if the rich message contains all of it
	richWouldHelp bool

	lifecycle message.Lifecycle // lifecycle of all messages; zero means ResendIfDeleted
}

// forChat returns the content in a form that the chat can show: one rich message if Telegram accepts rich messages,
// otherwise plain texts.
func (s contents) forChat(m *messages) contents {
	if s.rich.Blocks == nil || !m.takesRich() {
		s.rich = richContent{}
		return s
	}
	s.texts, s.file = []render.Text{s.rich.text(s.texts)}, s.richFile
	return s
}

// text returns the plain text for clients that cannot show rich messages: the first of the texts that is not empty.
func (r richContent) text(texts []render.Text) render.Text {
	for _, t := range texts {
		if t.Text != "" {
			return t
		}
	}
	return render.Plain("…")
}

// firstChanged returns the index of the first message whose text or buttons change.
func (s contents) firstChanged() int { return s.first - s.strips }

// perMessage returns the content of each message. Only the last message has the buttons and the remark.
func (s contents) perMessage() []message.Content {
	out := make([]message.Content, s.first+len(s.texts))
	last := -1
	for i := s.firstChanged(); i < s.first; i++ {
		out[i] = message.Content{Unknown: true, Lifecycle: message.EditOnly}
	}
	for i, t := range s.texts {
		out[s.first+i].Text, out[s.first+i].Lifecycle = t, s.lifecycle
		if t.Text != "" {
			last = s.first + i
		}
	}
	if last >= 0 {
		out[last].Keyboard = s.buttons
		out[last].Text = withRemark(out[last].Text, s.remark)
		if s.rich.Blocks != nil {
			out[last].Rich = s.rich.withTexts(remarkText(s.remark)).Blocks
		}
	}
	return out
}

// conclude shows the final content of a card in the chat. It returns when the chat shows the content, or shows a notice
// that a part may be missing. conclude first stores the content in the database, so that the next process can continue
// after a crash.
func (c *Cards) conclude(ctx context.Context, s *messages, content contents) error {
	if err := s.saveFinal(ctx, content); err != nil {
		return err
	}
	if s.retryLostChat() {
		if err := s.detachFrom(ctx, content.first, orchestrator.Failed); err != nil {
			return err
		}
	}
	if err := c.showContents(ctx, s, content); err != nil {
		return fmt.Errorf("show a turn's outcome: %w", err)
	}
	content = content.forChat(s)
	c.reportTooOld(ctx, s)
	if err := c.deliverFile(ctx, s, content); err != nil {
		return fmt.Errorf("send an answer as a file: %w", err)
	}
	if err := c.sendEnd(ctx, s, content, orchestrator.Pending); err != nil {
		return fmt.Errorf("announce the end of a turn: %w", err)
	}
	if err := c.sendLossNotice(ctx, s); err != nil {
		return err
	}
	c.reportLost(ctx, s, true)
	c.askAboutRich(ctx, s, content)
	return nil
}

// strip removes the buttons of a card.
func (c *Cards) strip(ctx context.Context, s *messages) error {
	n := s.opened()
	if err := c.showContents(ctx, s, contents{first: n, strips: s.withButtons(n)}); err != nil {
		return fmt.Errorf("remove the buttons of a card: %w", err)
	}
	return nil
}

// showContents sends, edits and deletes messages until the chat shows the content.
func (c *Cards) showContents(ctx context.Context, s *messages, content contents) error {
	// The sequence numbers of these requests (see part.touched) must exceed those of all earlier requests for the card.
	for call := 1 << 30; !s.shows(content.firstChanged(), content.forChat(s).perMessage()); call++ {
		priority := outbox.Awaited
		if s.opened() == 0 {
			priority = outbox.Urgent
		}
		err := c.postDelivery(ctx, s, priority, func(ctx context.Context) error {
			// Choose the action only now, because an earlier request may have changed the state of the messages.
			act, _ := s.next(content.firstChanged(), content.forChat(s).perMessage(), true)
			if act.step == message.None {
				return outbox.ErrNotNeeded
			}
			return s.perform(ctx, act, s.begin(act, call))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// amend replaces the final content of a card. If the bot may not write to the chat, amend only stores the content, so
// that a later ShowAgain can send it.
func (c *Cards) amend(ctx context.Context, s *messages, content contents) error {
	s.mu.Lock()
	gone := s.lost == chatGone
	s.mu.Unlock()
	if gone {
		return s.saveFinal(ctx, content)
	}
	if err := c.conclude(ctx, s, content); err != nil {
		return err
	}
	if err := c.sendEnd(ctx, s, content, orchestrator.Sent); err != nil {
		return fmt.Errorf("change what announces the end of a turn: %w", err)
	}
	return nil
}

// postDelivery makes a Telegram request without which the card would be incomplete. The outbox may call run again after
// a failure, so run must never send a message twice.
func (c *Cards) postDelivery(
	ctx context.Context, s *messages, priority outbox.Priority, run func(context.Context) error,
) error {
	return c.opts.Outbox.Do(ctx, outbox.Call{
		Chat: outbox.ChatOf(s.where().Chat), Priority: priority, Key: cardKey(s.turn.ID), Idempotent: true, Run: run,
	})
}

func cardKey(turn cli.TurnID) string { return "card/" + string(turn) }

// sendLossNotice sends a notice that a part of the answer may be missing, unless it was sent before.
func (c *Cards) sendLossNotice(ctx context.Context, s *messages) error {
	p := c.opts.Lang.Of(s.where().Chat)
	unknown, refused := s.missing()
	if !unknown && !refused {
		return nil
	}
	n := message.Content{ReplyTo: s.replyTo(), Lifecycle: message.ResendIfUnknown}
	if unknown {
		n.Text = render.Plain(p.Text("card.part-unknown"))
		n.Keyboard = tgapi.Keyboard{{c.opts.Buttons(p).ShowAgain(s.turn.ID)}}
	} else {
		n.Text = render.Plain(p.Text("card.part-refused"))
	}
	return c.send(ctx, s, s.notice, n)
}

// send sends a message that is not part of the answer, such as a notice or a file.
func (c *Cards) send(ctx context.Context, s *messages, m *message.Message, content message.Content) error {
	return c.postDelivery(ctx, s, outbox.Awaited, func(ctx context.Context) error {
		return m.Do(ctx, m.Begin(content), content)
	})
}

func (c *Cards) load(ctx context.Context, t orchestrator.Turn) (*messages, savedCard, error) {
	s := c.messagesOf(t)
	saved, err := s.recall(ctx)
	return s, saved, err
}

// Redeliver implements orchestrator.Chat. It shows the result of a turn whose card the previous process did not
// complete.
func (c *Cards) Redeliver(ctx context.Context, t orchestrator.Turn) error {
	s, saved, err := c.load(ctx, t)
	if err != nil {
		return err
	}
	if t.Outcome.Announce == orchestrator.Unwanted {
		return c.strip(ctx, s)
	}
	if interrupted(t) {
		s.lost = quietLoss // hide the loss of text, because users do not wait for an answer of an interrupted turn
	}
	content := c.resume(t, s, saved)
	if interrupted(t) && !s.isSent(content.first) {
		// Users must see that the turn was interrupted, even if the message then appears twice.
		content.lifecycle = message.ResendIfUnknown
	}
	if saved.Final && t.Outcome.Changed != (orchestrator.Changed{}) && saved.Remark == "" {
		content = c.addReceipt(t, s, content)
	}
	return c.conclude(ctx, s, content)
}

// addReceipt adds the number of changed files, and buttons for the changes, to the stored content of a card. It does
// nothing if the content already contains these buttons.
func (c *Cards) addReceipt(t orchestrator.Turn, s *messages, content contents) contents {
	p := c.opts.Lang.Of(s.where().Chat)
	if offered := c.offer(p, t.ID, t.Outcome); !reflect.DeepEqual(content.buttons, offered) {
		content.buttons = offered
		content.remark = footerLine(p, orchestrator.Outcome{Ending: orchestrator.Ending{Changed: t.Outcome.Changed}},
			nil, func(other orchestrator.ConversationID) string {
				return c.opts.Names.Where(p, s.where(), other)
			})
	}
	return content
}

func interrupted(t orchestrator.Turn) bool {
	return t.State == orchestrator.TurnInterrupted || t.Outcome.State == orchestrator.TurnInterrupted
}

// resume returns the content that the card must show after a restart of ductor.
func (c *Cards) resume(t orchestrator.Turn, s *messages, saved savedCard) contents {
	p := c.opts.Lang.Of(s.where().Chat)
	if saved.Final {
		return saved.contents(c.opts.Scrub.String(t.Outcome.Text))
	}
	if !interrupted(t) {
		done := c.contentsOf(t)
		done.end = c.endOf(s, t.Outcome)
		return done
	}
	// The turn was interrupted. Keep the last stored text, and add a line about the interruption below it. If the text
	// is unknown, send the line as a separate message.
	o := t.Outcome
	o.State, o.Text, o.Short = orchestrator.TurnInterrupted, "", ""
	d := c.document(p, false)
	if s.opened() == 0 {
		d = c.documentOf(t, false)
	}
	d.finish(o, nil)
	mark := d.slices([]position{{}}, position{})[0]
	opened := s.opened()
	alone := contents{
		first: opened, strips: s.withButtons(opened), texts: []render.Text{mark}, buttons: c.offer(p, t.ID, o),
		end: c.endOf(s, o),
	}
	if len(saved.Texts) == 0 || opened != saved.First+1 || s.parts[saved.First].State() != orchestrator.Sent {
		return alone
	}
	appended := alone
	appended.first, appended.strips = saved.First, max(alone.strips-1, 0)
	if saved.Rich.Blocks != nil {
		appended.rich = saved.Rich.withTexts(mark)
		alone = appended
	}
	shown := saved.Texts[len(saved.Texts)-1]
	if shown.Text == "" {
		return appended
	}
	both, fits := below(shown, mark)
	if !fits {
		return alone
	}
	appended.texts = []render.Text{both}
	return appended
}

// contentsOf returns the final content of a card that shows only the result, without the tools and events before it.
func (c *Cards) contentsOf(t orchestrator.Turn) contents {
	d := c.documentOf(t, false)
	d.finish(t.Outcome, c.look().Footer)
	_, texts, cut := d.layout([]position{{}}, render.MessageLimit, c.MaxMessages())
	return c.contentsIn(d, t, texts, cut)
}

// contentsIn returns the final content of a card. d is the card's finished document, and texts are its messages. cut is
// true if the messages omit a part of the document.
func (c *Cards) contentsIn(d *document, t orchestrator.Turn, texts []render.Text, cut bool) contents {
	rich := d.richContent(t)
	return contents{
		texts: texts, rich: rich, buttons: c.offer(d.lang, t.ID, t.Outcome), file: c.fileOf(t.Outcome, cut),
		richFile:      c.fileOf(t.Outcome, rich.Cut),
		richWouldHelp: richWouldHelp(t, texts),
	}
}

// claim records that the card of a turn is being changed. If another change is already in progress, claim does nothing
// and returns the kind of the other change.
func (c *Cards) claim(turn cli.TurnID, what activity) (busy activity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if busy = c.changing[turn]; busy == idle {
		c.changing[turn] = what
	}
	return busy
}

func (c *Cards) release(turn cli.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.changing, turn)
}

// offer returns the buttons below the result of a turn.
func (c *Cards) offer(p lang.Printer, turn cli.TurnID, o orchestrator.Outcome) tgapi.Keyboard {
	k := c.remedies(p, turn, o)
	if row := c.opts.Buttons(p).Tables(turn, o.Text); row != nil {
		k = append(k, row)
	}
	if row := c.opts.Buttons(p).Changes(turn, o.Changed); len(row) > 0 {
		k = append(k, row)
	}
	if o.Steps > 0 {
		k = append(k, []tgapi.Button{c.opts.Buttons(p).Steps(turn)})
	}
	return k
}

// remedies returns the buttons with which users can repeat or continue the turn.
func (c *Cards) remedies(p lang.Printer, turn cli.TurnID, o orchestrator.Outcome) tgapi.Keyboard {
	switch o.State {
	case orchestrator.TurnAborted:
		return nil
	case orchestrator.TurnInterrupted:
		o.Recovery = orchestrator.Repeatable()
	}
	return c.opts.Buttons(p).Offer(turn, o.Recovery)
}
