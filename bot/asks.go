package bot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// askClient is what approvals need of a Client.
type askClient interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
}

// askJournal is what approvals need of a Journal: it keeps drafts of answers by key.
type askJournal interface {
	SaveCard(ctx context.Context, key string, content []byte) error
	LoadCard(ctx context.Context, key string) ([]byte, []orchestrator.CardPart, error)
}

// askBoard shows what agents ask: a message for each, which is edited as the ask changes and loses its buttons
// when it is decided. What is known of the message is told to the desk before and after it is sent, so a
// restart goes on with the message that is there. What is shown before attach is sent then. Safe for concurrent
// use; nothing here waits for the network.
type askBoard struct {
	out     *outbox.Outbox
	client  askClient
	journal askJournal // of drafts
	log     *slog.Logger

	mu    sync.Mutex
	desk  Desk // nil before attach
	cards map[orchestrator.AskID]*askCard
	names map[orchestrator.PersonID]string // of those who pressed
}

func newAskBoard(out *outbox.Outbox, client askClient, journal askJournal, log *slog.Logger) *askBoard {
	return &askBoard{
		out: out, client: client, journal: journal, log: log,
		cards: make(map[orchestrator.AskID]*askCard), names: make(map[orchestrator.PersonID]string),
	}
}

// askCard is one ask in the chat. The lock of askBoard guards it. It is kept until the ask is over and the chat
// shows that.
type askCard struct {
	// These never change.
	id        orchestrator.AskID
	conv      orchestrator.ConversationID
	questions []cli.Question
	log       *slog.Logger

	ask   orchestrator.Ask
	draft askDraft
	known bool // the draft is what the journal has

	// state and message are what AskShown was told. Unknown with a message means that the message is not the
	// ask but the notice that it may be missing; noNotice that nobody knows whether that one arrived.
	state   orchestrator.SendState
	message int
	shown   string // fingerprint of what the message shows; empty where that is not known
	busy    bool   // a call waits in the outbox or is being made
	fails   int    // calls since the last that went well
	moved   bool   // its topic is gone, so it is in the chat's main one
	plain   bool   // its formatting was refused
	reborn  bool   // a person deleted it, and it was sent once more
}

// noNotice stands in place of the number of a notice that has none.
const noNotice = -1

// ShowAsk implements orchestrator.Asks.
func (b *askBoard) ShowAsk(a orchestrator.Ask) {
	b.mu.Lock()
	c := b.cards[a.ID]
	if c == nil {
		c = b.newCard(a)
		b.cards[a.ID] = c
	}
	c.ask = a
	b.mu.Unlock()
	b.push(c)
}

// newCard goes on from what is known of an ask's message.
func (b *askBoard) newCard(a orchestrator.Ask) *askCard {
	c := &askCard{
		id: a.ID, conv: a.Conversation, questions: a.Questions,
		log: b.log.With("turn", a.Turn, "chat", a.Conversation.Chat, "topic", a.Conversation.Topic),
		ask: a, state: a.Sent, message: a.Message,
	}
	switch a.Sent {
	case "", orchestrator.Pending:
		c.state, c.known = orchestrator.Pending, true
	case orchestrator.Sending: // ductor ended while it was on its way
		c.state = orchestrator.Unknown
	}
	return c
}

// hint says that an agent of a conversation waits for people; empty if none does. A message that comes meanwhile
// is no answer to it unless somebody was asked for words.
func (b *askBoard) hint(in orchestrator.ConversationID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.cards {
		if c.conv == in && c.open() {
			return "The agent waits for an answer to what it asks above."
		}
	}
	return ""
}

// attach begins to show what there is.
func (b *askBoard) attach(d Desk) {
	b.mu.Lock()
	b.desk = d
	var cards []*askCard
	for _, c := range b.cards {
		cards = append(cards, c)
	}
	b.mu.Unlock()
	for _, c := range cards {
		b.push(c)
	}
}

// askStep is the call that brings the chat closer to how an ask stands.
type askStep int

const (
	askRest askStep = iota
	askSend
	askNotice // say that the ask may be missing
	askEdit
)

func (c *askCard) open() bool { return c.ask.State == orchestrator.AskOpen }

func (b *askBoard) nextLocked(c *askCard) askStep {
	switch {
	case c.state == orchestrator.Pending && c.open():
		return askSend
	case c.state == orchestrator.Unknown && c.message == 0 && c.open():
		return askNotice
	case c.message > 0 && (c.state == orchestrator.Sent || c.state == orchestrator.Unknown):
		if t, k := b.viewLocked(c); c.shown != askPrint(t, k) {
			return askEdit
		}
	}
	return askRest
}

// push posts the next call for a card, one at a time; what it shows is decided when it is made.
func (b *askBoard) push(c *askCard) {
	b.mu.Lock()
	if b.desk == nil || c.busy {
		b.mu.Unlock()
		return
	}
	step := b.nextLocked(c)
	if step == askRest {
		if !c.open() && b.cards[c.id] == c {
			delete(b.cards, c.id)
		}
		b.mu.Unlock()
		return
	}
	c.busy = true
	priority := outbox.Awaited
	if step == askEdit && !c.open() {
		priority = outbox.Housekeeping
	}
	b.mu.Unlock()
	b.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(c.conv.Chat), Priority: priority, Key: "ask/" + string(c.id), Idempotent: step == askEdit,
		Run: func(ctx context.Context) error { return b.make(ctx, c, step) },
	}, func(err error) { b.made(c, err) })
}

func (b *askBoard) make(ctx context.Context, c *askCard, step askStep) error {
	switch step {
	case askEdit:
		return b.edit(ctx, c)
	case askNotice:
		return b.sendNotice(ctx, c)
	}
	return b.send(ctx, c)
}

// made is called when a call is decided.
func (b *askBoard) made(c *askCard, err error) {
	b.mu.Lock()
	c.busy = false
	pause := min(askRetry<<min(c.fails, 10), askRetryMost)
	if c.fails++; err == nil {
		c.fails = 0
	}
	b.mu.Unlock()
	if err == nil {
		b.push(c)
		return
	}
	c.log.Warn("what an agent asks is not shown as it stands", "err", err)
	if errors.Is(err, outbox.ErrClosed) {
		return // it is taken up after a restart
	}
	// An agent waits for it, and what was decided meanwhile is not shown either: nothing else may come to wake us.
	time.AfterFunc(pause, func() { b.push(c) })
}

// Pauses between tries to show an ask, which grow.
const (
	askRetry     = 5 * time.Second
	askRetryMost = 5 * time.Minute
)

// place is where the card is shown.
func (c *askCard) place() orchestrator.ConversationID {
	id := c.conv
	if c.moved {
		id.Topic = 0
	}
	return id
}

// home is the conversation of the ask that a message shows, which is another than the message's own when the
// topic is gone.
func (b *askBoard) home(in orchestrator.ConversationID, message int) orchestrator.ConversationID {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.cards {
		if c.moved && c.message == message && c.place() == in {
			return c.conv
		}
	}
	return in
}

// namesKept bounds who is remembered by name.
const namesKept = 1024

// meet remembers what a person is called.
func (b *askBoard) meet(p orchestrator.PersonID, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.names) >= namesKept {
		clear(b.names)
	}
	b.names[p] = name
}
