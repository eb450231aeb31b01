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

// Buttons creates the buttons below a card. The card does not handle their presses.
type Buttons interface {
	// Offer returns buttons for the choices that a user has after a turn.
	Offer(turn cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard
	EndRetries(turn cli.TurnID) tgapi.Button // cancels the next retry
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
	Names    *tgapi.ChatNames // describes other chats to which the turn wrote
	Log      *slog.Logger

	FileMarks bool        // an answer shows file names instead of the marks; see render.FileMark
	Displays  Displays    // nil: never ask about rich messages
	Draft     Draft       // nil: send no drafts
	Look      func() Look // returns the current look; nil for the defaults
	// Lost is called when a chat rejects the card of a turn. It must not wait for the chat. It may be nil.
	Lost func(ctx context.Context, l Lost)
}

// Look configures how cards grow and end. Zero durations mean the defaults.
type Look struct {
	// The intervals are the shortest times between two edits.
	IntervalPrivate time.Duration `toml:"interval_private" default:"1s" check:"100ms..1m"`
	IntervalGroup   time.Duration `toml:"interval_group" default:"3s" check:"100ms..1m"`
	// StatusAfter is how long the agent must be silent before the card shows why the turn waits.
	StatusAfter time.Duration `toml:"status_after" default:"2s" check:"0..1h"`
	Footer      []FooterField `toml:"footer" default:"['model', 'time']" check:"model|time|cost|tokens"`
	// Mode is ModeDraft if cards in private chats start as drafts. This requires Options.Draft.
	Mode string `toml:"mode" default:"edit" check:"edit|draft"`
	// MaxMessages limits the number of messages of an answer. 0 means no limit. The messages of a longer answer show
	// its beginning and end, and a file contains the whole answer.
	MaxMessages int    `toml:"max_messages" default:"4" check:"0..100"`
	Pacing      Pacing `toml:",inline"`

	Think  orchestrator.ThinkMode // default for turns without their own mode: ThinkOff
	Places bool                   // sandboxes exist, so the footer names the place where the turn ran
}

// ModeDraft is a Look.Mode.
const ModeDraft = "draft"

// Cards opens cards, and continues the previous process's cards. Safe for concurrent use.
type Cards struct {
	opts Options

	mu       sync.Mutex
	again    map[cli.TurnID]activity // activity of each turn's card after its end
	finished map[cli.TurnID]*card    // cards that ended a moment ago, because more text of the answer may come
	noDrafts map[int64]bool          // chats in which Telegram rejected drafts
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

// look returns the current look, with the defaults.
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

// refuseDrafts stops the use of drafts in a chat after Telegram rejected one.
func (c *Cards) refuseDrafts(chat int64, reason error) {
	c.opts.Log.Warn("Telegram refuses drafts; this chat gets messages that grow by edits", "chat", chat, "err", reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noDrafts[chat] = true
}

// Open returns the card of a turn that starts to run. Open sends nothing yet. The caller must call Finish.
func (c *Cards) Open(t orchestrator.Turn) orchestrator.Card {
	k := c.cardOf(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.startLocked()
	return k
}

// cardOf returns a card without its timer.
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

// document returns an empty document. The document masks secrets before it is cut into messages: if a cut split a
// secret, no later check would find it.
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

// card is the growing message of one turn. Show adds an event to the document and returns. The outbox makes the
// calls, and requests their content when the chat has budget. A card has no goroutine: events, finished calls and one
// timer drive it.
type card struct {
	cards    *Cards
	turn     orchestrator.Turn
	messages *messages

	recalling sync.Mutex // held while recall reads the journal

	mu       sync.Mutex
	doc      *document
	starts   []position // where the messages start; fixed for messages that were sent
	pace     pace
	alarm    alarm
	finished bool
	ending   *contents // the final content; nil before the outcome
	past     past      // the state left by the previous process
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
	// Whitespace is invisible, so do not spend the first call's budget on it.
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

// Amend adds later information to the shown outcome: the changes of the turn, or more text of its answer.
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

// amended returns the content that replaces the final content. It returns false if the card has no room for more
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

// outcome returns the final content of the card. Only the first call computes it.
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
	if o.Short != "" { // o.Short is shorter than the streamed text
		_, texts, cut = c.doc.layout([]position{{}}, render.MessageLimit, c.cards.MaxMessages())
	}
	c.turn.Outcome = o
	return c.cards.contentsIn(c.doc, c.turn, texts, cut)
}

// layoutLocked renders the document as messages. Messages that were sent keep their starts. limit is the maximum size
// of the last message. cut reports whether the messages omit a part of the document.
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
