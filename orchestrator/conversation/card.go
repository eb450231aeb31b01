package conversation

import (
	"context"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
)

// heldCard keeps the events of a turn that began while the chat was still being shown the answer before it, and opens
// the card of the turn once that answer is complete: the parts of two answers do not mix.
type heldCard struct {
	open func() orchestrator.Card

	mu     sync.Mutex
	card   orchestrator.Card // nil until it is opened
	events []cli.Event
}

// card opens the card of a turn, or the one it has, once the outcome before it was shown.
func (c *conversation) card(ctx context.Context, t orchestrator.Turn, w waiting) orchestrator.Card {
	shown := c.lastShown()
	select {
	case <-shown:
		return c.e.openCard(ctx, t, w)
	default:
	}
	held := &heldCard{open: func() orchestrator.Card { return c.e.openCard(ctx, t, w) }}
	c.e.wg.Go(func() {
		<-shown // deliver ends it in any case
		held.release()
	})
	return held
}

// release opens the card and tells it what it missed.
func (h *heldCard) release() orchestrator.Card {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.card == nil {
		h.card = h.open()
		for _, ev := range h.events {
			h.card.Show(ev)
		}
		h.events = nil
	}
	return h.card
}

func (h *heldCard) Show(ev cli.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.card != nil {
		h.card.Show(ev)
		return
	}
	if delta, ok := ev.(cli.TextDelta); ok && len(h.events) > 0 {
		if last, ok := h.events[len(h.events)-1].(cli.TextDelta); ok {
			h.events[len(h.events)-1] = cli.TextDelta{Text: last.Text + delta.Text}
			return
		}
	}
	h.events = append(h.events, ev)
}

// Finish is called when the outcome before it was shown, or given up.
func (h *heldCard) Finish(ctx context.Context, outcome orchestrator.Outcome) error {
	return h.release().Finish(ctx, outcome)
}

// Amend implements orchestrator.Card.
func (h *heldCard) Amend(ctx context.Context, outcome orchestrator.Outcome) error {
	return h.release().Amend(ctx, outcome)
}

func (h *heldCard) Leave(ctx context.Context) { h.release().Leave(ctx) }

// quietChat is a Chat that hears of a turn with a silent word, or whose answer it may have already, once it ended with
// something else.
type quietChat struct{ orchestrator.Chat }

func isQuiet(t orchestrator.Turn) bool { return t.Wants.Silence != "" || t.Wants.Known != "" }

// known says whether an outcome is not worth telling.
func known(w orchestrator.Wants, o orchestrator.Outcome) bool {
	return o.State == orchestrator.TurnDone && (orchestrator.OnlyWord(o.Text, w.Silence) || w.Known != "" && w.Known == orchestrator.Digest(o.Text))
}

func (d quietChat) Card(t orchestrator.Turn) orchestrator.Card {
	if isQuiet(t) {
		return quietCard{d.Chat, t}
	}
	return d.Chat.Card(t)
}

func (d quietChat) Reopen(ctx context.Context, t orchestrator.Turn) orchestrator.Card {
	if isQuiet(t) {
		return quietCard{d.Chat, t}
	}
	return d.Chat.Reopen(ctx, t)
}

func (d quietChat) Queued(t orchestrator.Turn, ahead int) {
	if !isQuiet(t) {
		d.Chat.Queued(t, ahead)
	}
}

func (d quietChat) Unqueued(t orchestrator.Turn) {
	if !isQuiet(t) {
		d.Chat.Unqueued(t)
	}
}

func (d quietChat) Redeliver(ctx context.Context, t orchestrator.Turn) error {
	if known(t.Wants, t.Outcome) {
		return nil
	}
	return d.Chat.Redeliver(ctx, t)
}

// quietCard shows nothing before the outcome.
type quietCard struct {
	chat orchestrator.Chat
	turn orchestrator.Turn
}

func (quietCard) Show(cli.Event)        {}
func (quietCard) Leave(context.Context) {}

// Amend implements orchestrator.Card. Finish gets the whole outcome of such a turn.
func (quietCard) Amend(context.Context, orchestrator.Outcome) error { return nil }

func (c quietCard) Finish(ctx context.Context, o orchestrator.Outcome) error {
	c.turn.State, c.turn.Outcome = o.State, o
	return quietChat{c.chat}.Redeliver(ctx, c.turn)
}
