// Package card shows each turn as a card: one or more Telegram messages that grow by edits while the agent answers, and
// that show the result when the turn has ended.
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

// Buttons creates the buttons below a card. Another package handles button presses.
type Buttons interface {
	// Offer returns buttons for the actions that a user can choose after a turn, such as a retry.
	Offer(turn cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard
	EndRetries(turn cli.TurnID) tgapi.Button // cancels the next automatic retry
	ShowAgain(turn cli.TurnID) tgapi.Button
	Steps(turn cli.TurnID) tgapi.Button
	Changes(turn cli.TurnID, c orchestrator.Changed) []tgapi.Button
	Stop(turn cli.TurnID) tgapi.Button // stops the running turn
	// Tables returns buttons that send the tables of an answer as pictures, or nil if the answer has no tables.
	Tables(turn cli.TurnID, answer string) []tgapi.Button
}

// Options configures Cards.
type Options struct {
	Messages *message.Messages
	Typing   func(ctx context.Context, to orchestrator.ConversationID) error
	Outbox   *outbox.Outbox
	Journal  orchestrator.CardStore
	Buttons  func(p lang.Printer) Buttons // returns the buttons in the printer's language
	Scrub    *tgapi.Scrubber              // removes secrets from all texts; nil: no secrets are removed
	Lang     *lang.Choices
	Names    *tgapi.ChatNames // names of chats, so that a card can name another chat
	Log      *slog.Logger

	FileMarks bool        // whether cards show the name of a sent file in place of its render.FileMark
	Displays  Displays    // stores which chats show rich messages; nil: users are never asked
	Draft     Draft       // shows drafts; nil: cards do not use drafts
	Look      func() Look // returns the current settings; nil for the defaults
	// Lost is called if Telegram rejects a card because the bot may not write to the chat. It must not wait for
	// messages to the chat. It may be nil.
	Lost func(ctx context.Context, l Lost)
}

// Look contains the user's settings for cards. Zero durations mean the defaults.
type Look struct {
	// Shortest time between two edits, in private chats and in groups.
	IntervalPrivate time.Duration `toml:"interval_private" default:"1s" check:"100ms..1m"`
	IntervalGroup   time.Duration `toml:"interval_group" default:"3s" check:"100ms..1m"`
	// StatusAfter is how long the agent must be silent before the card shows the reason.
	StatusAfter time.Duration `toml:"status_after" default:"2s" check:"0..1h"`
	Footer      []FooterField `toml:"footer" default:"['model', 'time']" check:"model|time|cost|tokens"`
	// Mode is ModeDraft to show a growing answer as a Telegram draft in private chats. This requires Options.Draft.
	Mode string `toml:"mode" default:"edit" check:"edit|draft"`
	// MaxMessages limits the number of messages for one answer. 0 means no limit. If an answer needs more messages,
	// they show only its beginning and its end, and a file contains the whole answer.
	MaxMessages int    `toml:"max_messages" default:"4" check:"0..100"`
	Pacing      Pacing `toml:",inline"`

	Think  orchestrator.ThinkMode // whether turns without their own setting show reasoning
	Places bool                   // whether the footer says where the turn ran, even if it ran in no sandbox
}

// ModeDraft is the value of Look.Mode that enables drafts.
const ModeDraft = "draft"

// Cards creates the cards of new turns, and continues cards after a restart of ductor. It is safe for concurrent use.
type Cards struct {
	opts Options

	mu       sync.Mutex
	changing map[cli.TurnID]activity // cards of ended turns that are being changed
	finished map[cli.TurnID]*card    // cards of turns that have just ended, because the agent may still send more text
	noDrafts map[int64]bool          // IDs of the chats in which Telegram rejected drafts
}

func New(o Options) *Cards {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Names == nil {
		o.Names = &tgapi.ChatNames{}
	}
	return &Cards{
		opts: o, changing: make(map[cli.TurnID]activity), finished: make(map[cli.TurnID]*card),
		noDrafts: make(map[int64]bool),
	}
}

// MaxMessages returns the current value of Look.MaxMessages.
func (c *Cards) MaxMessages() int { return c.look().MaxMessages }

// look returns the current settings, with defaults for zero durations.
func (c *Cards) look() Look {
	var l Look
	if c.opts.Look != nil {
		l = c.opts.Look()
	}
	l.IntervalPrivate, l.IntervalGroup = cmp.Or(l.IntervalPrivate, time.Second), cmp.Or(l.IntervalGroup, 3*time.Second)
	l.StatusAfter = cmp.Or(l.StatusAfter, 2*time.Second)
	return l
}

func (c *Cards) draftsIn(chat int64) bool {
	if c.opts.Draft == nil || c.look().Mode != ModeDraft || outbox.ChatOf(chat).Group {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.noDrafts[chat]
}

func (c *Cards) refuseDrafts(chat int64, reason error) {
	c.opts.Log.Warn("Telegram refuses drafts; this chat gets messages that grow by edits", "chat", chat, "err", reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noDrafts[chat] = true
}

// Open returns the card of a turn that is about to run. It sends nothing yet. The caller must call Finish on the card.
func (c *Cards) Open(t orchestrator.Turn) orchestrator.Card {
	k := c.cardOf(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.startLocked()
	return k
}

func (c *Cards) cardOf(t orchestrator.Turn) *card {
	now, look := time.Now(), c.look()
	k := &card{
		cards: c, turn: t, messages: c.messagesOf(t),
		doc:  c.documentOf(t, cmp.Or(t.Wants.Card.Think, look.Think) == orchestrator.ThinkOn),
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

// document returns an empty document. The document removes secrets before its text is cut into messages, because it
// would not recognize a secret that spans two messages.
func (c *Cards) document(p lang.Printer, thinking bool) *document {
	d := newDocument(thinking)
	d.scrub, d.lang, d.shows.fileMarks = c.opts.Scrub, p, c.opts.FileMarks
	return d
}

// documentOf returns a document for the turn. The document is empty, or contains only the turn's title.
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

// TitleLine returns the title of a turn in bold, which is the first line of the turn's card. t.Wants.Title must not be
// empty.
func TitleLine(t orchestrator.Turn) render.Text {
	return render.Styled(render.Bold, render.ShortLine(t.Wants.Title, maxTitle))
}

// maxTitle is the maximum length of a turn's title, in UTF-16 units.
const maxTitle = 200

func (c *Cards) messagesOf(t orchestrator.Turn) *messages {
	s := &messages{
		record: &record{journal: c.opts.Journal, turn: t.ID}, turn: t, all: c.opts.Messages,
		conv: t.Prompt.Conversation,
	}
	s.notice, s.file, s.end = s.open(noticeName), s.open(fileName), s.open(endName)
	return s
}

// card shows one turn as messages that grow. Show only updates the document. When Telegram's rate limit allows an edit,
// the outbox asks the card for the current content and sends it. A card has no goroutine of its own: it acts on the
// agent's events, on finished requests to Telegram, and on one timer.
type card struct {
	cards    *Cards
	turn     orchestrator.Turn
	messages *messages

	recalling sync.Mutex // locked while the method recall reads the database

	mu       sync.Mutex
	doc      *document
	starts   []position // positions in the document at which the messages start; fixed for messages that were sent
	pace     pace
	alarm    alarm
	finished bool
	ending   *contents // final content; nil while the turn runs
	past     past      // state that the previous process stored before a restart
}

// Show implements orchestrator.Card.
func (c *card) Show(ev cli.Event) {
	now := time.Now()
	c.mu.Lock()
	if c.finished {
		c.mu.Unlock()
		return
	}
	c.noteReplayLocked(ev, now)
	if w, ok := ev.(cli.ApprovalWithdrawn); ok && w.Pressed {
		c.pace.lastLooked = now
	}
	c.doc.now = now
	what := c.doc.applyEvent(ev)
	if what.text != "" && !c.past.replaying {
		c.pace.growing.add(what.text, now)
	}
	// The first message must contain more than white space, which users cannot see.
	visible := what.urgent || what.text != "" && (c.pace.calls > 0 || strings.TrimSpace(what.text) != "")
	if visible {
		c.pace.addNews(what.news(), now)
		c.doc.wait.clock = 0
	}
	post := c.planLocked(now)
	c.mu.Unlock()
	c.postCall(post)
}

// End implements orchestrator.Card.
func (c *card) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = true
	c.alarm.timer.Stop()
}

// Finish implements orchestrator.Card.
func (c *card) Finish(ctx context.Context, o orchestrator.Outcome) error {
	c.End()
	if err := c.recall(ctx); err != nil {
		return fmt.Errorf("show a turn's outcome: %w", err)
	}
	if o.Announce == orchestrator.Unwanted {
		return c.cards.strip(ctx, c.messages)
	}
	content := c.outcome(o)
	c.cards.opts.Outbox.Retract(outbox.ChatOf(c.messages.where().Chat), cardKey(c.turn.ID))
	if err := c.cards.conclude(ctx, c.messages, content); err != nil {
		return err
	}
	c.cards.rememberFinished(c)
	return nil
}

// Amend adds information that became known after Finish: the files that the turn changed, or more text of its answer.
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
	if content.lifecycle == message.EditOnly && c.messages.gone() {
		return orchestrator.ErrCannotAmend
	}
	return nil
}

// amended returns the final content of the card after a change of the turn's outcome to o. It returns false if the
// answer became longer and no longer fits into the existing messages.
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
		if on := ending.forChat(c.messages); on.file != "" || len(on.perMessage()) > c.messages.opened() {
			o.Text = o.Text[:len(o.Text)-more]
			c.doc.withdraw(more)
			c.doc.amend(o, footer)
			c.turn.Outcome = o
			return contents{}, false
		}
		ending.lifecycle = message.EditOnly
	}
	c.ending = &ending
	return ending, true
}

// outcome returns the final content of the card. Later calls return the same content as the first call.
func (c *card) outcome(o orchestrator.Outcome) contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == nil {
		c.doc.finish(o, c.cards.look().Footer)
		ending := c.contentLocked(o)
		if !c.pace.userIsLooking(time.Now()) {
			ending.end = c.cards.endOf(c.messages, o)
		}
		c.ending = &ending
	}
	return *c.ending
}

func (c *card) contentLocked(o orchestrator.Outcome) contents {
	texts, cut := c.layoutLocked(render.MessageLimit)
	if o.Short != "" { // Short replaces the streamed text, so all messages need a new layout
		_, texts, cut = c.doc.layout([]position{{}}, render.MessageLimit, c.cards.MaxMessages())
	}
	c.turn.Outcome = o
	return c.cards.contentsIn(c.doc, c.turn, texts, cut)
}

// layoutLocked cuts the document into messages. It does not move the start of a message that was already sent. The last
// message has at most limit UTF-16 units. layoutLocked also reports whether the messages omit a part of the document.
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
