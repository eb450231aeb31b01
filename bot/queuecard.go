package bot

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"ductor/bot/card"
	"ductor/bot/edits"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// queueCards sends a small message for each prompt in the queue. The message has buttons, for example to cancel the
// prompt. It disappears when the turn starts, even after a restart of ductor. No method waits for the network.
// queueCards is safe for concurrent use.
type queueCards struct {
	messages *message.Messages
	lang     *lang.Choices
	edits    *edits.Prompts // when a turn has ended, closes the offer to restart this turn

	mu    sync.Mutex
	cards map[cli.TurnID]*queueCard
	past  map[cli.TurnID]bool // turns that left the queue before their card was created
}

func newQueueCards(messages *message.Messages, l *lang.Choices, edits *edits.Prompts) *queueCards {
	return &queueCards{
		messages: messages, lang: l, edits: edits,
		cards: make(map[cli.TurnID]*queueCard), past: make(map[cli.TurnID]bool),
	}
}

// queueCard is the message about one waiting turn. queueCards.mu guards it.
type queueCard struct {
	turn    orchestrator.Turn // the turn, as passed to queueCards.queued or queueCards.unqueued
	ahead   int
	hint    string // text about a further reason to wait, such as an open approval; may be empty
	over    bool   // true if the turn has left the queue
	message *message.Message
}

const pastKept = 256

// openLocked creates the card of a turn.
func (q *queueCards) openLocked(t orchestrator.Turn) *queueCard {
	c := &queueCard{turn: t}
	c.message = q.messages.Open(message.Spec{
		Key: card.QueuedKey(t.ID), Turn: t.ID, To: t.Prompt.Conversation, Delay: updates.ReceiptDelay,
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

// content returns the content of a card. After the turn has left the queue, the content makes message.Messages delete
// the card, or edit it one last time if the turn was cancelled or steered into the running turn.
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
		text := titled(c.turn, p.Text("bot.cancelled"))
		return message.Content{Text: render.Unchanged(text), Lifecycle: message.EditOnly}
	case orchestrator.TurnSteered: // keep the card, because no other message shows this prompt
		text := titled(c.turn, p.Text("bot.steered-card"))
		return message.Content{Text: render.Unchanged(text), Lifecycle: message.EditOnly}
	}
	return message.Content{Text: render.Unchanged(p.Text("bot.runs-now")), Lifecycle: message.DeleteWhenDone}
}

// queued sends a card for the turn t, with the number of turns ahead of it. It calls hint while it holds the lock. A
// concurrent removeHints therefore runs either before this call, or after the new card exists.
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

// waiting returns the waiting turn with the prompt from a message. It returns false if there is none. If a compaction
// for the same message waits too, waiting returns the turn behind it.
func (q *queueCards) waiting(in orchestrator.ConversationID, message int) (turn orchestrator.Turn, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ahead := 0
	for _, c := range q.cards {
		prompt := c.turn.Prompt
		if !c.over && prompt.Conversation == in && prompt.Message == message && c.ahead >= ahead {
			turn, ahead, found = c.turn, c.ahead, true
		}
	}
	return turn, found
}

// waits reports whether a prompt from the given message waits.
func (q *queueCards) waits(in orchestrator.ConversationID, message int) bool {
	_, waits := q.waiting(in, message)
	return waits
}

func (q *queueCards) buttons(p lang.Printer, t orchestrator.Turn) tgapi.Keyboard {
	b := turnButtons{p}
	row := []tgapi.Button{b.Interrupt(t.ID), b.Cancel(t.ID)}
	if t.MayJoin(t.Prompt.PartOf) {
		row = append([]tgapi.Button{b.Steer(t.ID)}, row...)
	}
	if t.Prompt.PartOf != 0 {
		return tgapi.Keyboard{{b.StartOver(t)}, row}
	}
	return tgapi.Keyboard{row}
}

// promote shows that a turn has moved to the front of the queue. It also updates the cards of the turns behind this
// turn.
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

// foremost returns the first maxMoved cards in the order of the queue.
func foremost(cards []*queueCard) []*queueCard {
	slices.SortFunc(cards, func(a, b *queueCard) int { return cmp.Compare(a.ahead, b.ahead) })
	return cards[:min(len(cards), maxMoved)]
}

func show(cards []*queueCard) {
	for _, c := range cards {
		c.message.Update(outbox.Housekeeping)
	}
}

// text returns the text of a card: the title of the turn, if it has one, and the number of turns ahead of it.
func (q *queueCards) text(c *queueCard) string {
	p := q.lang.Of(c.turn.Prompt.Conversation.Chat)
	text := p.Text("bot.next-in-line")
	if c.ahead > 1 {
		text = p.Text("bot.ahead", c.ahead)
	}
	text = titled(c.turn, text)
	if c.hint != "" {
		text += "\n" + c.hint
	}
	return text
}

// titled adds the turn's title as a first line. Only turns without a user's message have a title, such as the turns of
// jobs.
func titled(t orchestrator.Turn, text string) string {
	if t.Wants.Title == "" {
		return text
	}
	return card.TitleLine(t).Text + "\n" + text
}

// move changes the chat of the waiting turns of a group that got a new ID.
func (q *queueCards) move(from, to int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.cards {
		if in := &c.turn.Prompt.Conversation; in.Chat == from {
			in.Chat = to
		}
	}
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
	q.mu.Unlock()
	show(changed) // all changed cards, not only maxMoved: an old hint would ask users for what they have already done
}

// unqueued removes the card of a turn that has left the queue, even if a previous process sent the card. It also
// updates the cards of the turns that waited behind this turn.
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
	c.message.Update(outbox.Awaited)
}

// maxMoved is the maximum number of other cards that are edited when one card changes.
const maxMoved = 4

// moveUp updates the positions of all cards behind the given position, and returns the cards that must be edited. If a
// user cancelled a turn, these are the first maxMoved of the updated cards. Otherwise, moveUp returns only the card
// that is now next. More edits would use up Telegram's rate limit, and the agent's answer would then arrive later.
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
