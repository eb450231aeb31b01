// Package card shows a turn as one message that grows by edits, and its outcome when the turn has ended.
package card

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Buttons makes the buttons below a card. What they do when pressed is not the card's business.
type Buttons interface {
	// Offer is what a user can choose after a turn.
	Offer(turn cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard
	EndRetries(turn cli.TurnID) tgapi.Button // ends a pause before a retry
	ShowAgain(turn cli.TurnID) tgapi.Button
	Steps(turn cli.TurnID) tgapi.Button
	Changes(turn cli.TurnID, c orchestrator.Changed) []tgapi.Button
	Stop(turn cli.TurnID) tgapi.Button // end the turn, which runs
	// Tables draw the tables of an answer; nil for one that has none.
	Tables(turn cli.TurnID, answer string) []tgapi.Button
}

// Options configure Cards; zero durations mean the defaults.
type Options struct {
	Messages *message.Messages
	Typing   func(ctx context.Context, to orchestrator.ConversationID) error
	Outbox   *outbox.Outbox
	Journal  orchestrator.CardStore
	Buttons  func(p lang.Printer) Buttons // in a language
	Scrub    *tgapi.Scrubber              // nil masks nothing
	Lang     *lang.Choices
	Names    *tgapi.ChatNames // say where another turn wrote
	Log      *slog.Logger

	FileMarks bool        // names of files stand for the marks in an answer; see render.FileMark
	Displays  Displays    // nil: no chat is asked
	Draft     Draft       // nil: there are no drafts
	Look      func() Look // as it is now; nil for the defaults
	// Lost hears of a turn whose card the chat does not take. It must not wait for the chat. nil for none.
	Lost func(ctx context.Context, l Lost)
}

// Look is how cards grow and end. Zero durations mean the defaults.
type Look struct {
	IntervalPrivate time.Duration          // least time between two edits; 1 s
	IntervalGroup   time.Duration          // 3 s
	StatusAfter     time.Duration          // silence after which the card says what is waited for; 2 s
	Think           orchestrator.ThinkMode // of turns that say nothing of it; ThinkOff
	Footer          []FooterField          // nil for none
	Places          bool                   // there are sandboxes, so the footer says where a turn ran
	Drafts          bool                   // cards of private chats begin as drafts, if there is a Draft
	// MaxMessages is how many messages show an answer; 0 is no limit. Of a longer one they show the beginning and
	// the end, and a file has all of it.
	MaxMessages int
	Pacing      Pacing
}

// Cards opens cards and shows again those of the previous process. Safe for concurrent use.
type Cards struct {
	opts Options

	mu       sync.Mutex
	again    map[cli.TurnID]activity // of cards whose turns have ended
	finished map[cli.TurnID]*card    // a moment ago: more of an answer may come
	noDrafts map[int64]bool          // chats in which Telegram refused one
}

// New makes Cards.
func New(o Options) *Cards {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Names == nil {
		o.Names = &tgapi.ChatNames{}
	}
	return &Cards{opts: o, again: make(map[cli.TurnID]activity), finished: make(map[cli.TurnID]*card), noDrafts: make(map[int64]bool)}
}

// MaxMessages is how many messages show an answer now; 0 is no limit.
func (c *Cards) MaxMessages() int { return c.look().MaxMessages }

// look is how cards look now.
func (c *Cards) look() Look {
	var l Look
	if c.opts.Look != nil {
		l = c.opts.Look()
	}
	l.IntervalPrivate, l.IntervalGroup = cmp.Or(l.IntervalPrivate, time.Second), cmp.Or(l.IntervalGroup, 3*time.Second)
	l.StatusAfter = cmp.Or(l.StatusAfter, 2*time.Second)
	return l
}

// draftsIn says whether the cards of a chat begin as drafts.
func (c *Cards) draftsIn(chat int64) bool {
	if c.opts.Draft == nil || !c.look().Drafts || outbox.ChatOf(chat).Group {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.noDrafts[chat]
}

// refuseDrafts has the cards of a chat be messages from their start.
func (c *Cards) refuseDrafts(chat int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noDrafts[chat] = true
}

// Open makes the card of a turn that begins to run. Nothing is sent yet. The caller ends it with Finish.
func (c *Cards) Open(t orchestrator.Turn) orchestrator.Card {
	k := c.cardOf(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.startLocked()
	return k
}

// cardOf makes a card without a timer.
func (c *Cards) cardOf(t orchestrator.Turn) *card {
	now, look := time.Now(), c.look()
	k := &card{
		cards: c, turn: t, messages: c.messagesOf(t), doc: c.documentOf(t, cmp.Or(t.Wants.Card.Think, look.Think) == orchestrator.ThinkOn),
		pace: pace{growing: growing{Pacing: look.Pacing}, moved: now, saved: now, typing: now.Add(firstTyping)},
	}
	if c.draftsIn(t.Prompt.Conversation.Chat) {
		k.pace.growing = growing{}
	}
	k.pace.interval = k.intervalLocked()
	return k
}

func (c *card) startLocked() {
	c.alarm = alarm{timer: time.AfterFunc(firstTyping, c.tick), rings: c.pace.typing}
}

// document makes an empty document. It masks secrets before it is cut into messages, since no later check would find a
// secret of which two messages have a half each.
func (c *Cards) document(p lang.Printer, thinking bool) *document {
	d := newDocument(thinking)
	d.scrub, d.lang, d.shows.fileMarks = c.opts.Scrub, p, c.opts.FileMarks
	return d
}

// documentOf is the document of a turn: it begins with what the turn is called.
func (c *Cards) documentOf(t orchestrator.Turn, thinking bool) *document {
	d := c.document(c.opts.Lang.Of(t.Prompt.Conversation.Chat), thinking)
	if t.Wants.Title != "" {
		d.addNote(TitleLine(t))
	}
	d.shows.outputs = isRich(t)
	d.turn = turnFacts{agent: t.Agent, then: t.Wants.Card.Then, bypass: t.Bypass}
	d.turn.where = func(other orchestrator.ConversationID) string {
		return c.opts.Names.Where(d.lang, t.Prompt.Conversation, other)
	}
	if c.look().Places || t.Sandbox != "" {
		d.turn.place = render.Place(d.lang, t.Sandbox.Name())
	}
	return d
}

// TitleLine is the first line of what shows t: what the turn is called, in bold. t.Wants.Title is not empty.
func TitleLine(t orchestrator.Turn) render.Text {
	return render.Styled(render.Bold, render.ShortLine(t.Wants.Title, titleMost))
}

// titleMost bounds what a turn is called, in UTF-16 units.
const titleMost = 200

func (c *Cards) messagesOf(t orchestrator.Turn) *messages {
	s := &messages{
		record: record{journal: c.opts.Journal}, turn: t.ID, all: c.opts.Messages, log: c.opts.Log, conv: t.Prompt.Conversation,
	}
	s.notice, s.file, s.end = s.open(noticeName), s.open(fileName), s.open(endName)
	s.prompt, s.asker = t.Prompt.Message, t.Prompt.Person
	if outbox.ChatOf(s.conv.Chat).Group || t.Wants.Card.Quote || t.Again != "" {
		s.replyTo = t.Prompt.Message // in a group several users ask at once
	}
	return s
}

// card is the growing message of one turn. Show folds events into the document and returns; calls are made
// by the outbox, which asks for their content when there is budget for them. There is no goroutine of its
// own: events, the end of a call and one timer move it on.
type card struct {
	cards    *Cards
	turn     orchestrator.Turn
	messages *messages

	recalling sync.Mutex // held while recall reads the journal

	mu       sync.Mutex
	doc      *document
	starts   []position // where messages begin; those that were begun stay there
	pace     pace
	alarm    alarm
	finished bool
	ending   *contents // the final content; nil before the outcome
	past     past      // what the previous process left of the card
}

// Show implements orchestrator.Card.
func (c *card) Show(ev cli.Event) {
	now := time.Now()
	c.mu.Lock()
	if c.finished {
		c.mu.Unlock()
		return
	}
	c.hearLocked(ev, now)
	if w, ok := ev.(cli.ApprovalWithdrawn); ok && w.Pressed {
		c.pace.seen = now
	}
	c.doc.now = now
	what := c.doc.add(ev)
	if what.text != "" && !c.past.replaying {
		c.pace.growing.add(what.text, now)
	}
	// Nothing can be shown of whitespace, so it must not spend the first call's budget.
	visible := what.urgent || what.text != "" && (c.pace.calls > 0 || strings.TrimSpace(what.text) != "")
	if visible {
		c.pace.add(what.news(), now)
		c.doc.wait.clock = 0
	}
	post := c.planLocked(now)
	c.mu.Unlock()
	c.post(post)
}

// Finish implements orchestrator.Card.
func (c *card) Finish(ctx context.Context, o orchestrator.Outcome) error {
	c.mu.Lock()
	c.finished = true
	c.alarm.timer.Stop()
	c.mu.Unlock()
	if err := c.recall(ctx); err != nil {
		return fmt.Errorf("show a turn's outcome: %w", err)
	}
	content := c.outcome(o)
	c.cards.opts.Outbox.Retract(outbox.ChatOf(c.turn.Prompt.Conversation.Chat), cardKey(c.turn.ID))
	if err := c.cards.conclude(ctx, c.messages, content); err != nil {
		return err
	}
	c.cards.remember(c)
	return nil
}

// Amend has the chat show an outcome that differs from the one of Finish in what the turn changed, or in text at the end of its answer.
func (c *card) Amend(ctx context.Context, o orchestrator.Outcome) error {
	if c.cards.claim(c.turn.ID, remarking) != idle {
		return ErrNotYet
	}
	defer c.cards.release(c.turn.ID)
	content, ok := c.amended(o)
	if !ok {
		return orchestrator.ErrCannotAmend
	}
	if err := c.cards.amend(ctx, c.messages, content); err != nil {
		return err
	}
	if content.life == message.OnlyEdits && c.messages.gone() {
		return orchestrator.ErrCannotAmend
	}
	return nil
}

// amended is what the card is to show instead of what Finish showed; false if it has no room for more text.
func (c *card) amended(o orchestrator.Outcome) (contents, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Changed == (orchestrator.Changed{}) {
		o.Changed = c.turn.Outcome.Changed
	}
	footer := c.cards.look().Footer
	more := c.doc.amend(o, footer)
	ending := c.contentLocked(o)
	if c.ending.end != nil {
		ending.end = c.cards.endOf(c.messages, o)
	}
	if more > 0 {
		if on := ending.on(c.messages); on.file != "" || len(on.wants()) > c.messages.opened() {
			o.Text = o.Text[:len(o.Text)-more]
			c.doc.withdraw(more)
			c.doc.amend(o, footer)
			c.turn.Outcome = o
			return contents{}, false
		}
		ending.life = message.OnlyEdits
	}
	c.ending = &ending
	return ending, true
}

// outcome is what the card is to show in the end. It is made once, however often Finish is called.
func (c *card) outcome(o orchestrator.Outcome) contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == nil {
		c.doc.finish(o, c.cards.look().Footer)
		ending := c.contentLocked(o)
		if !c.pace.looks(time.Now()) {
			ending.end = c.cards.endOf(c.messages, o)
		}
		c.ending = &ending
	}
	return *c.ending
}

// contentLocked is what the card shows of an outcome.
func (c *card) contentLocked(o orchestrator.Outcome) contents {
	texts, cut := c.layoutLocked(render.MessageLimit)
	if o.Short != "" { // what was streamed is longer
		_, texts, cut = c.doc.layout([]position{{}}, render.MessageLimit, c.cards.MaxMessages())
	}
	c.turn.Outcome = o
	return c.cards.contentsIn(c.doc, c.turn, texts, cut)
}

// layoutLocked renders the document in messages. Where those begin that were begun is settled; limit is
// how long the last may be. cut says that they leave out a part of the document.
func (c *card) layoutLocked(limit int) (texts []render.Text, cut bool) {
	if len(c.starts) == 0 {
		c.starts = c.inheritLocked()
	}
	opened := c.messages.opened()
	settled := max(min(opened, len(c.starts)), 1)
	begun := slices.Clone(c.starts[:settled])
	if reach, ok := c.messages.continued(); ok && settled == opened && c.doc.within(begun[settled-1], reach) {
		begun = append(begun, c.doc.wholeWord(begun[settled-1], reach))
	}
	c.starts, texts, cut = c.doc.layout(begun, limit, c.cards.MaxMessages())
	return texts, cut
}
