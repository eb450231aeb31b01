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

// queueCards shows that prompts wait. Below each waiting prompt is a small message with a button that removes the
// prompt from the queue. The message disappears when the turn runs, even after a restart. No method waits for the
// network. queueCards is safe for concurrent use.
type queueCards struct {
	messages *message.Messages
	lang     *lang.Choices

	mu    sync.Mutex
	cards map[cli.TurnID]*queueCard
	past  map[cli.TurnID]bool // turns that left the queue before queued was called for them
}

func newQueueCards(messages *message.Messages, l *lang.Choices) *queueCards {
	return &queueCards{
		messages: messages, lang: l, cards: make(map[cli.TurnID]*queueCard), past: make(map[cli.TurnID]bool),
	}
}

// queueCard is the card of one waiting turn. The lock of queueCards guards it.
type queueCard struct {
	turn    orchestrator.Turn // state in the queue, or when the turn left it
	ahead   int
	hint    string // another reason to wait, besides the turns ahead; may be empty
	over    bool   // the turn has left the queue
	message *message.Message
}

const pastKept = 256

// openLocked returns a card for a turn.
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

// content returns the content of a card. When the turn runs, the card disappears. If the turn is cancelled, the card
// becomes a note.
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
	case orchestrator.TurnSteered: // a steered prompt has no card of its own
		return message.Content{Text: render.Unchanged(p.Text("bot.steered-card")), Lifecycle: message.EditOnly}
	}
	return message.Content{Text: render.Unchanged(p.Text("bot.runs-now")), Lifecycle: message.DeleteWhenDone}
}

// queued shows that t waits. It calls hint while it holds the lock. So either removeHints finds the new card, or hint
// returns the current state.
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

// promote shows that a turn runs next, and that the turns before it now wait behind it.
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

// foremost returns the cards with the fewest turns ahead, at most maxMoved.
func foremost(cards []*queueCard) []*queueCard {
	slices.SortFunc(cards, func(a, b *queueCard) int { return cmp.Compare(a.ahead, b.ahead) })
	return cards[:min(len(cards), maxMoved)]
}

func show(cards []*queueCard) {
	for _, c := range cards {
		c.message.Update(outbox.Housekeeping)
	}
}

// text returns the text of a card. The text describes the waiting prompt if the card does not reply to the prompt's
// message.
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

// removeHints removes the hints from the cards of a conversation, because they no longer apply.
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

// unqueued removes the card of a turn, even if a previous process sent it, and updates the cards behind it.
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

// maxMoved limits how many other cards are edited after one card changed.
const maxMoved = 4

// moveUp reduces the number of turns ahead for the cards behind a place in the queue. It returns the cards to edit.
// If the queue advances, moveUp returns only the next card, because editing every card at each step would spend the
// budget of the answer. If a user cancelled a turn, moveUp returns the foremost cards behind it.
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
