// Package card shows a turn as a message that grows by edits, and its outcome when the turn has ended.
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

// Buttons creates the buttons below a card. The card does not know their effect.
type Buttons interface {
	// Offer returns buttons for a user's options after a turn.
	Offer(turn cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard
	EndRetries(turn cli.TurnID) tgapi.Button // ends a pause before a retry
	ShowAgain(turn cli.TurnID) tgapi.Button
	Steps(turn cli.TurnID) tgapi.Button
	Changes(turn cli.TurnID, c orchestrator.Changed) []tgapi.Button
	Stop(turn cli.TurnID) tgapi.Button // stops the running turn
	// Tables returns buttons that draw the tables of an answer, or nil if it has none.
	Tables(turn cli.TurnID, answer string) []tgapi.Button
}

// Options configures Cards. Zero durations mean the defaults.
type Options struct {
	Messages *message.Messages
	Typing   func(ctx context.Context, to orchestrator.ConversationID) error
	Outbox   *outbox.Outbox
	Journal  orchestrator.CardStore
	Buttons  func(p lang.Printer) Buttons // returns the buttons in a language
	Scrub    *tgapi.Scrubber              // nil: mask nothing
	Lang     *lang.Choices
	Names    *tgapi.ChatNames // describe the chat that another turn wrote to
	Log      *slog.Logger

	FileMarks bool        // file names replace the marks in an answer; see render.FileMark
	Displays  Displays    // nil: ask no chat
	Draft     Draft       // nil: no drafts
	Look      func() Look // returns the current look; nil for the defaults
	// Lost is called for a turn whose card the chat rejects. It must not wait for the chat. It may be nil.
	Lost func(ctx context.Context, l Lost)
}

// Look configures how cards grow and end. Zero durations mean the defaults.
type Look struct {
	// The intervals are the shortest times between two edits.
	IntervalPrivate time.Duration `toml:"interval_private" default:"1s" check:"100ms..1m"`
	IntervalGroup   time.Duration `toml:"interval_group" default:"3s" check:"100ms..1m"`
	// StatusAfter is the silence after which the card shows why the turn waits.
	StatusAfter time.Duration `toml:"status_after" default:"2s" check:"0..1h"`
	Footer      []FooterField `toml:"footer" default:"['model', 'time']" check:"model|time|cost|tokens"`
	// Mode is ModeDraft if cards in private chats start as drafts. ModeDraft requires Draft.
	Mode string `toml:"mode" default:"edit" check:"edit|draft"`
	// MaxMessages limits the number of messages of an answer. 0 means no limit. If an answer is longer, its messages
	// show its beginning and its end, and a file contains all of it.
	MaxMessages int    `toml:"max_messages" default:"4" check:"0..100"`
	Pacing      Pacing `toml:",inline"`

	Think  orchestrator.ThinkMode // for turns without a mode of their own; ThinkOff
	Places bool                   // sandboxes exist, so the footer names the place where a turn ran
}

// ModeDraft is a Look.Mode.
const ModeDraft = "draft"

// Cards opens cards, and continues the previous process's cards. Safe for concurrent use.
type Cards struct {
	opts Options

	mu       sync.Mutex
	again    map[cli.TurnID]activity // by turn, the change that is being made after its end
	finished map[cli.TurnID]*card    // ended a moment ago: more text of the answer may come
	noDrafts map[int64]bool          // chats in which Telegram rejected a draft
}

// New returns Cards.
func New(o Options) *Cards {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Names == nil {
		o.Names = &tgapi.ChatNames{}
	}
	return &Cards{
		opts: o, again: make(map[cli.TurnID]activity), finished: make(map[cli.TurnID]*card),
		noDrafts: make(map[int64]bool),
	}
}

// MaxMessages returns the current limit for the number of messages of an answer. 0 means no limit.
func (c *Cards) MaxMessages() int { return c.look().MaxMessages }

// look returns the current look.
func (c *Cards) look() Look {
	var l Look
	if c.opts.Look != nil {
		l = c.opts.Look()
	}
	l.IntervalPrivate, l.IntervalGroup = cmp.Or(l.IntervalPrivate, time.Second), cmp.Or(l.IntervalGroup, 3*time.Second)
	l.StatusAfter = cmp.Or(l.StatusAfter, 2*time.Second)
	return l
}

// draftsIn reports whether the cards of a chat start as drafts.
func (c *Cards) draftsIn(chat int64) bool {
	if c.opts.Draft == nil || c.look().Mode != ModeDraft || outbox.ChatOf(chat).Group {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.noDrafts[chat]
}

// refuseDrafts makes the cards of a chat messages from their start.
func (c *Cards) refuseDrafts(chat int64, reason error) {
	c.opts.Log.Warn("Telegram refuses drafts; this chat gets messages that grow by edits", "chat", chat, "err", reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noDrafts[chat] = true
}

// Open returns the card of a turn that starts to run. It sends nothing yet. The caller ends the card with Finish.
func (c *Cards) Open(t orchestrator.Turn) orchestrator.Card {
	k := c.cardOf(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.startLocked()
	return k
}

// cardOf returns a card without a timer.
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

// document returns an empty document. The document masks secrets before it is cut into messages: if a secret were split
// between two messages, no later check would find it.
func (c *Cards) document(p lang.Printer, thinking bool) *document {
	d := newDocument(thinking)
	d.scrub, d.lang, d.shows.fileMarks = c.opts.Scrub, p, c.opts.FileMarks
	return d
}

// documentOf returns the document of a turn, which starts with the turn's title.
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

// TitleLine returns the first line of the messages of t: its title in bold. t.Wants.Title must not be empty.
func TitleLine(t orchestrator.Turn) render.Text {
	return render.Styled(render.Bold, render.ShortLine(t.Wants.Title, maxTitle))
}

// maxTitle bounds a turn's title, in UTF-16 units.
const maxTitle = 200

func (c *Cards) messagesOf(t orchestrator.Turn) *messages {
	s := &messages{
		record: &record{journal: c.opts.Journal, turn: t.ID}, turn: t, all: c.opts.Messages,
		conv: t.Prompt.Conversation,
	}
	s.notice, s.file, s.end = s.open(noticeName), s.open(fileName), s.open(endName)
	return s
}

// card is the growing message of one turn. Show adds events to the document and returns. The outbox makes the calls,
// and asks for their content when the chat has budget. A card has no goroutine: events, finished calls and one timer
// drive it.
type card struct {
	cards    *Cards
	turn     orchestrator.Turn
	messages *messages

	recalling sync.Mutex // held while recall reads the journal

	mu       sync.Mutex
	doc      *document
	starts   []position // where messages start; fixed for those already sent
	pace     pace
	alarm    alarm
	finished bool
	ending   *contents // the final content; nil before the outcome
	past     past      // state that the previous process left
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
	// Whitespace is invisible, so it must not spend the budget of the first call.
	visible := what.urgent || what.text != "" && (c.pace.calls > 0 || strings.TrimSpace(what.text) != "")
	if visible {
		c.pace.addNews(what.news(), now)
		c.doc.wait.clock = 0
	}
	post := c.planLocked(now)
	c.mu.Unlock()
	c.postCall(post)
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
	if o.Announce == orchestrator.Unwanted {
		return c.cards.strip(ctx, c.messages)
	}
	content := c.outcome(o)
	c.cards.opts.Outbox.Retract(outbox.ChatOf(c.turn.Prompt.Conversation.Chat), cardKey(c.turn.ID))
	if err := c.cards.conclude(ctx, c.messages, content); err != nil {
		return err
	}
	c.cards.rememberFinished(c)
	return nil
}

// Amend adds to the shown outcome what came after Finish: the changes of the turn, or text at the end of its answer.
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

// amended returns the content that replaces the content of Finish. It returns false if the card has no room for more
// text.
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

// outcome returns the final content of the card. It computes that once, however often Finish is called.
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

// contentLocked returns the content for an outcome.
func (c *card) contentLocked(o orchestrator.Outcome) contents {
	texts, cut := c.layoutLocked(render.MessageLimit)
	if o.Short != "" { // the streamed text is longer
		_, texts, cut = c.doc.layout([]position{{}}, render.MessageLimit, c.cards.MaxMessages())
	}
	c.turn.Outcome = o
	return c.cards.contentsIn(c.doc, c.turn, texts, cut)
}

// layoutLocked renders the document in messages. The starts of messages already sent do not move. limit bounds the last
// message. cut reports whether the messages leave out a part of the document.
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
