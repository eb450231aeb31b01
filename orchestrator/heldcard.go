package orchestrator

import (
	"context"
	"sync"

	"ductor/cli"
)

// heldCard keeps the events of a turn that began while the chat was still being shown the answer before it, and opens
// the card of the turn once that answer is complete: the parts of two answers do not mix.
type heldCard struct {
	open func() Card

	mu     sync.Mutex
	card   Card // nil until it is opened
	events []cli.Event
}

// card opens the card of a turn, or the one it has, once the outcome before it was shown.
func (o *Orchestrator) card(ctx context.Context, t Turn, left cli.Remains) Card {
	shown := o.lastShown(t.Prompt.Conversation)
	select {
	case <-shown:
		return o.openCard(ctx, t, left)
	default:
	}
	held := &heldCard{open: func() Card { return o.openCard(ctx, t, left) }}
	o.wg.Go(func() {
		<-shown // deliver ends it in any case
		held.release()
	})
	return held
}

// release opens the card and tells it what it missed.
func (h *heldCard) release() Card {
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
func (h *heldCard) Finish(ctx context.Context, outcome Outcome) error {
	return h.release().Finish(ctx, outcome)
}

func (h *heldCard) Leave(ctx context.Context) { h.release().Leave(ctx) }
