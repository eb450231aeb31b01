package bot

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"ductor/bot/card"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// queueClient is what queue cards need of a Client.
type queueClient interface {
	Send(ctx context.Context, m tgapi.Message) (int, error)
	Edit(ctx context.Context, chat int64, message int, t render.Text, k tgapi.Keyboard) error
	Delete(ctx context.Context, chat int64, message int) error
}

// queueJournal is what queue cards need of a Journal.
type queueJournal interface {
	SaveCardPart(ctx context.Context, key string, part int, state orchestrator.SendState, message int) error
	LoadCard(ctx context.Context, key string) ([]byte, []orchestrator.CardPart, error)
}

// queueCards show that prompts wait: a small message below each, with a button that takes it out of the
// queue, and which is gone once the turn runs. Its message id is kept in the journal, so that it goes away
// after a restart too. Safe for concurrent use; nothing here waits for the network.
type queueCards struct {
	out     *outbox.Outbox
	client  queueClient
	journal queueJournal
	log     *slog.Logger

	mu    sync.Mutex
	cards map[cli.TurnID]*queueCard
	past  map[cli.TurnID]bool // turns that left the queue before the chat was told that they wait
}

func newQueueCards(out *outbox.Outbox, client queueClient, journal queueJournal, log *slog.Logger) *queueCards {
	return &queueCards{
		out: out, client: client, journal: journal, log: log,
		cards: make(map[cli.TurnID]*queueCard), past: make(map[cli.TurnID]bool),
	}
}

// queueCard is one waiting turn. The lock of queueCards guards it.
type queueCard struct {
	turn    orchestrator.Turn
	ahead   int
	hint    string // what the queue waits for, beside the turns ahead; may be empty
	shown   string // what was sent
	message int    // 0 until it is sent
	sending bool   // the send was handed to the outbox and is not decided
	over    bool   // the turn no longer waits
	last    orchestrator.TurnState
}

const pastKept = 256

// queueKey is what the journal knows a queue card by: beside the card of the turn itself.
func queueKey(turn cli.TurnID) string { return "queued:" + string(turn) }

// queued shows that t waits. hint is asked with the lock held, so that unhint finds the card or hint tells what is so.
func (q *queueCards) queued(t orchestrator.Turn, ahead int, hint func() string) {
	q.mu.Lock()
	if q.past[t.ID] {
		delete(q.past, t.ID)
		q.mu.Unlock()
		return
	}
	if c := q.cards[t.ID]; c != nil {
		c.ahead = ahead
		q.mu.Unlock()
		q.edit(t.ID)
		return
	}
	q.cards[t.ID] = &queueCard{turn: t, ahead: ahead, hint: hint(), sending: true}
	q.mu.Unlock()
	id := t.Prompt.Conversation
	q.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(id.Chat), Priority: outbox.Awaited, Key: queueKey(t.ID), Delay: updates.ReceiptDelay,
		Run: func(ctx context.Context) error { return q.send(ctx, t.ID) },
	}, func(err error) { q.sent(t.ID, err) })
}

// send shows the card, unless its turn left the queue while the send waited for its budget.
func (q *queueCards) send(ctx context.Context, turn cli.TurnID) error {
	q.mu.Lock()
	c := q.cards[turn]
	if c.over {
		q.mu.Unlock()
		return outbox.ErrNotNeeded
	}
	c.shown = queuedText(c)
	m := tgapi.Message{
		To: c.turn.Prompt.Conversation, Text: render.Unchanged(c.shown), ReplyTo: c.turn.Prompt.Message,
		Keyboard: queueButtons(turn), Silent: true,
	}
	q.mu.Unlock()
	message, err := q.client.Send(ctx, m)
	if err != nil {
		return err
	}
	if err := q.journal.SaveCardPart(ctx, queueKey(turn), 0, orchestrator.Sent, message); err != nil {
		q.log.Warn("keep queue card", "turn", turn, "err", err)
	}
	q.mu.Lock()
	c.message = message
	q.mu.Unlock()
	return nil
}

// sent is called when the send is decided.
func (q *queueCards) sent(turn cli.TurnID, err error) {
	q.mu.Lock()
	c := q.cards[turn]
	c.sending = false
	over, changed := c.over, c.shown != queuedText(c)
	if over {
		delete(q.cards, turn)
	}
	q.mu.Unlock()
	switch {
	case err != nil:
		q.log.Warn("queue card not shown", "turn", turn, "err", err)
	case over && c.message != 0:
		q.remove(c.turn, c.last, c.message)
	case changed: // while it was on its way
		q.edit(turn)
	}
}

func queueButtons(turn cli.TurnID) tgapi.Keyboard {
	b := turnButtons{}
	return tgapi.Keyboard{{b.Steer(turn), b.Interrupt(turn), b.Cancel(turn)}}
}

// promote shows that a turn is the next to run: those that were before it wait behind it.
func (q *queueCards) promote(id orchestrator.ConversationID, turn cli.TurnID) {
	q.mu.Lock()
	c := q.cards[turn]
	if c == nil || c.over || c.ahead <= 1 {
		q.mu.Unlock()
		return
	}
	var moved []cli.TurnID
	for other, o := range q.cards {
		if !o.over && o.turn.Prompt.Conversation == id && o.ahead < c.ahead {
			o.ahead++
			moved = append(moved, other)
		}
	}
	c.ahead = 1
	slices.SortFunc(moved, func(a, b cli.TurnID) int { return cmp.Compare(q.cards[a].ahead, q.cards[b].ahead) })
	q.mu.Unlock()
	for _, t := range append([]cli.TurnID{turn}, moved[:min(len(moved), maxMoved)]...) {
		q.edit(t)
	}
}

// queuedText says what waits where no message of a person does: that one the card answers to.
func queuedText(c *queueCard) string {
	text := "⏳ Queued, next in line."
	if c.ahead > 1 {
		text = fmt.Sprintf("⏳ Queued, %d ahead.", c.ahead)
	}
	if c.turn.Wants.Title != "" {
		text = card.TitleLine(c.turn).Text + "\n" + text
	}
	if c.hint != "" {
		text += "\n" + c.hint
	}
	return text
}

// unhint takes the hints off the cards of a conversation: what they told of is over.
func (q *queueCards) unhint(id orchestrator.ConversationID) {
	var changed []cli.TurnID
	q.mu.Lock()
	for turn, c := range q.cards {
		if c.turn.Prompt.Conversation == id && c.hint != "" {
			c.hint = ""
			changed = append(changed, turn)
		}
	}
	slices.SortFunc(changed, func(a, b cli.TurnID) int { return cmp.Compare(q.cards[a].ahead, q.cards[b].ahead) })
	q.mu.Unlock()
	for _, turn := range changed[:min(len(changed), maxMoved)] {
		q.edit(turn)
	}
}

// edit shows how many are ahead by now.
func (q *queueCards) edit(turn cli.TurnID) {
	q.mu.Lock()
	c := q.cards[turn]
	shown := c != nil && c.message != 0 && !c.over
	q.mu.Unlock()
	if !shown {
		return
	}
	id := c.turn.Prompt.Conversation
	q.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(id.Chat), Delivery: outbox.Newest, Priority: outbox.Housekeeping, Key: queueKey(turn), Idempotent: true,
		Run: func(ctx context.Context) error {
			q.mu.Lock()
			over, message, text := c.over, c.message, queuedText(c)
			q.mu.Unlock()
			if over {
				return outbox.ErrNotNeeded
			}
			return q.client.Edit(ctx, id.Chat, message, render.Unchanged(text), queueButtons(turn))
		},
	}, nil)
}

// unqueued takes the card away, and moves up those behind it.
func (q *queueCards) unqueued(t orchestrator.Turn) {
	q.mu.Lock()
	c := q.cards[t.ID]
	behind, message := 0, 0
	switch {
	case c == nil:
		if len(q.past) >= pastKept {
			clear(q.past)
		}
		q.past[t.ID] = true
	default:
		c.over, c.last, behind = true, t.State, c.ahead
		if !c.sending { // else sent takes it away
			delete(q.cards, t.ID)
			message = c.message
		}
	}
	next := q.moveUp(t.Prompt.Conversation, behind, t.State == orchestrator.TurnCancelled)
	q.mu.Unlock()
	for _, turn := range next {
		q.edit(turn)
	}
	switch {
	case c == nil:
		q.removeKnown(t)
	case message != 0:
		q.remove(t, t.State, message)
	}
}

// maxMoved is how many cards are edited at a time because of what became of others.
const maxMoved = 4

// moveUp counts one fewer ahead of the conversation's cards behind a place, and says which to edit. When the
// queue just goes on that is only the one that is next now: numbers that fall at every step would eat the
// budget of the answer. When a person cancelled one the foremost of those behind it are shown to move up.
func (q *queueCards) moveUp(id orchestrator.ConversationID, behind int, cancelled bool) (next []cli.TurnID) {
	for turn, c := range q.cards {
		if c.over || c.turn.Prompt.Conversation != id || c.ahead <= behind || c.ahead <= 1 {
			continue
		}
		if c.ahead--; c.ahead == 1 || cancelled {
			next = append(next, turn)
		}
	}
	slices.SortFunc(next, func(a, b cli.TurnID) int { return cmp.Compare(q.cards[a].ahead, q.cards[b].ahead) })
	return next[:min(len(next), maxMoved)]
}

// removeKnown takes away a card of before a restart. It reads the journal when the outbox gets to it.
func (q *queueCards) removeKnown(t orchestrator.Turn) {
	q.takeAway(t, func(ctx context.Context) error {
		_, parts, err := q.journal.LoadCard(ctx, queueKey(t.ID))
		if err != nil || len(parts) == 0 || parts[0].State != orchestrator.Sent {
			return err
		}
		return q.end(ctx, t, t.State, parts[0].Message)
	})
}

func (q *queueCards) remove(t orchestrator.Turn, state orchestrator.TurnState, message int) {
	q.takeAway(t, func(ctx context.Context) error { return q.end(ctx, t, state, message) })
}

func (q *queueCards) takeAway(t orchestrator.Turn, run func(context.Context) error) {
	priority := outbox.Housekeeping
	if t.State == orchestrator.TurnCancelled { // a user pressed the button and waits for its effect
		priority = outbox.Awaited
	}
	q.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(t.Prompt.Conversation.Chat), Priority: priority, Key: queueKey(t.ID), Idempotent: true, Run: run,
	}, func(err error) {
		if err != nil {
			q.log.Warn("queue card not taken away", "turn", t.ID, "err", err)
		}
	})
}

// end deletes the card of a turn that runs now, and turns that of a cancelled one into a note.
func (q *queueCards) end(ctx context.Context, t orchestrator.Turn, state orchestrator.TurnState, message int) error {
	chat := t.Prompt.Conversation.Chat
	text := "✖ Cancelled: this message will not run."
	switch state {
	case orchestrator.TurnCancelled:
	case orchestrator.TurnSteered: // it has no card of its own
		text = "↪ Handed to the agent while it works."
	default:
		err := q.client.Delete(ctx, chat, message)
		switch tgapi.FaultOf(err).Kind {
		case tgapi.BadRequest, tgapi.MessageGone: // too old to be deleted, or deleted already
		default:
			return err
		}
		text = "This message runs now."
	}
	err := q.client.Edit(ctx, chat, message, render.Unchanged(text), nil)
	switch tgapi.FaultOf(err).Kind {
	case tgapi.BadRequest, tgapi.MessageGone, tgapi.ChatGone:
		return nil
	}
	return err
}
