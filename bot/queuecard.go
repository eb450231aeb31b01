package bot

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"ductor/bot/card"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// queueCards shows which prompts are waiting in the queue: each one gets a small message with buttons, for example to
// cancel it. The message disappears when the turn starts, even after a restart of ductor. No method waits for the
// network. queueCards is safe for concurrent use.
type queueCards struct {
	messages *message.Messages
	lang     *lang.Choices

	mu    sync.Mutex
	cards map[cli.TurnID]*queueCard
	past  map[cli.TurnID]bool // turns for which unqueued was called before queued
}

func newQueueCards(messages *message.Messages, l *lang.Choices) *queueCards {
	return &queueCards{
		messages: messages, lang: l, cards: make(map[cli.TurnID]*queueCard), past: make(map[cli.TurnID]bool),
	}
}

// queueCard is the message about one waiting turn. queueCards.mu guards it.
type queueCard struct {
	turn    orchestrator.Turn // the turn as it was when it was queued, or when it left the queue
	ahead   int
	hint    string // a reason to wait besides other turns; may be empty
	over    bool   // the turn has left the queue
	message *message.Message
}

const pastKept = 256

// openLocked creates the card of a turn.
func (q *queueCards) openLocked(t orchestrator.Turn) *queueCard {
	c := &queueCard{turn: t}
	c.message = q.messages.Open(message.Spec{
		Key: "queued/" + string(t.ID), Turn: t.ID, To: t.Prompt.Conversation, Delay: updates.ReceiptDelay,
		Content: func(context.Context) (message.Content, error) {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.content(c), nil
		},
		Called: func(*message.Message) {
			q.mu.Lock()
			defer q.mu.Unlock()
			if c.over && q.cards[t.ID] == c {
				delete(q.cards, t.ID)
			}
		},
	})
	q.cards[t.ID] = c
	return c
}

// content returns the content of a card. It tells Messages to delete the card when the turn runs. If the turn was
// cancelled, the card shows that and stays.
func (q *queueCards) content(c *queueCard) message.Content {
	p := q.lang.Of(c.turn.Prompt.Conversation.Chat)
	if !c.over {
		return message.Content{
			Text: render.Unchanged(q.text(c)), ReplyTo: c.turn.Prompt.Message, Keyboard: q.buttons(p, c.turn),
			Silent: true,
		}
	}
	switch c.turn.State {
	case orchestrator.TurnCancelled:
		return message.Content{Text: render.Unchanged(p.Text("bot.cancelled")), Lifecycle: message.EditOnly}
	case orchestrator.TurnSteered: // the prompt became a part of another turn, so no other message mentions it
		return message.Content{Text: render.Unchanged(p.Text("bot.steered-card")), Lifecycle: message.EditOnly}
	}
	return message.Content{Text: render.Unchanged(p.Text("bot.runs-now")), Lifecycle: message.DeleteWhenDone}
}

// queued shows that t is waiting behind ahead other turns. It calls hint while it holds the lock, so that a concurrent
// removeHints either sees the new card, or has changed the result of hint before.
func (q *queueCards) queued(t orchestrator.Turn, ahead int, hint func() string) {
	q.mu.Lock()
	if q.past[t.ID] {
		delete(q.past, t.ID)
		q.mu.Unlock()
		return
	}
	c := q.cards[t.ID]
	urgency := outbox.Housekeeping
	if c == nil {
		c = q.openLocked(t)
		c.hint, urgency = hint(), outbox.Awaited
	}
	c.ahead = ahead
	q.mu.Unlock()
	c.message.Update(urgency)
}

func (q *queueCards) buttons(p lang.Printer, t orchestrator.Turn) tgapi.Keyboard {
	b := turnButtons{p}
	k := tgapi.Keyboard{{b.Steer(t.ID), b.Interrupt(t.ID), b.Cancel(t.ID)}}
	if t.Prompt.PartOf != 0 {
		k = append(tgapi.Keyboard{{b.StartOver(t)}}, k...)
	}
	return k
}

// promote shows that a turn is now the next in the queue, and that turns which were before it are now behind it.
func (q *queueCards) promote(id orchestrator.ConversationID, turn cli.TurnID) {
	q.mu.Lock()
	c := q.cards[turn]
	if c == nil || c.over || c.ahead <= 1 {
		q.mu.Unlock()
		return
	}
	var moved []*queueCard
	for _, o := range q.cards {
		if !o.over && o.turn.Prompt.Conversation == id && o.ahead < c.ahead {
			o.ahead++
			moved = append(moved, o)
		}
	}
	c.ahead = 1
	moved = foremost(moved)
	q.mu.Unlock()
	show(append([]*queueCard{c}, moved...))
}

// foremost returns those cards that are next in the queue, at most maxMoved.
func foremost(cards []*queueCard) []*queueCard {
	slices.SortFunc(cards, func(a, b *queueCard) int { return cmp.Compare(a.ahead, b.ahead) })
	return cards[:min(len(cards), maxMoved)]
}

func show(cards []*queueCard) {
	for _, c := range cards {
		c.message.Update(outbox.Housekeeping)
	}
}

// text returns the text of a card: how many turns are ahead, and the title of the turn if it has one.
func (q *queueCards) text(c *queueCard) string {
	p := q.lang.Of(c.turn.Prompt.Conversation.Chat)
	text := p.Text("bot.next-in-line")
	if c.ahead > 1 {
		text = p.Text("bot.ahead", c.ahead)
	}
	if c.turn.Wants.Title != "" {
		text = card.TitleLine(c.turn).Text + "\n" + text
	}
	if c.hint != "" {
		text += "\n" + c.hint
	}
	return text
}

// removeHints removes the hints from the cards of a conversation.
func (q *queueCards) removeHints(id orchestrator.ConversationID) {
	var changed []*queueCard
	q.mu.Lock()
	for _, c := range q.cards {
		if c.turn.Prompt.Conversation == id && c.hint != "" {
			c.hint = ""
			changed = append(changed, c)
		}
	}
	changed = foremost(changed)
	q.mu.Unlock()
	show(changed)
}

// unqueued removes the card of a turn that left the queue, even if a previous process sent the card. It also updates
// the cards behind it.
func (q *queueCards) unqueued(t orchestrator.Turn) {
	q.mu.Lock()
	c := q.cards[t.ID]
	if c == nil {
		if len(q.past) >= pastKept {
			clear(q.past)
		}
		q.past[t.ID] = true
		c = q.openLocked(t)
	}
	c.turn, c.over = t, true
	next := q.moveUp(t.Prompt.Conversation, c.ahead, t.State == orchestrator.TurnCancelled)
	q.mu.Unlock()
	show(next)
	c.message.Update(outbox.Awaited) // its buttons no longer work
}

// maxMoved is the maximum number of other cards that are edited when one card changes.
const maxMoved = 4

// moveUp reduces the number of turns ahead for all cards behind a position in the queue. It returns the cards to edit.
// These are few, because each edit delays the growth of the answer: only the next card, or the first few cards if the
// user cancelled a turn.
func (q *queueCards) moveUp(id orchestrator.ConversationID, behind int, cancelled bool) (next []*queueCard) {
	for _, c := range q.cards {
		if c.over || c.turn.Prompt.Conversation != id || c.ahead <= behind || c.ahead <= 1 {
			continue
		}
		if c.ahead--; c.ahead == 1 || cancelled {
			next = append(next, c)
		}
	}
	return foremost(next)
}
