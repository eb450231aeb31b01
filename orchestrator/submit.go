package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/cli"
)

// Submit puts a prompt at the end of its conversation's queue and starts it if nothing runs there. Its
// updates are marked handled in the same transaction. A full queue stores nothing and marks nothing.
//
// When a turn runs, the conversation's BusyMode says what becomes of it; Receipt.Did says what became.
func (o *Orchestrator) Submit(ctx context.Context, p Prompt) (Receipt, error) {
	l, err := o.line(p.Conversation)
	if err != nil {
		return Receipt{}, err
	}
	t := Turn{Prompt: p}
	receipt, err := o.append(ctx, l, &t)
	if err != nil || receipt.Ahead == 0 || receipt.Full {
		return receipt, err
	}
	receipt.Did = o.pressOn(context.WithoutCancel(ctx), t)
	if receipt.Did == BusyQueue {
		o.showQueued(l, t, receipt.Ahead)
	}
	return receipt, nil
}

// showQueued shows that a turn waits, if it still does: what shows that it runs must not come before.
func (o *Orchestrator) showQueued(l *line, t Turn, ahead int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.queue, isTurn(t.ID)); i >= 0 {
		l.queue[i].shown = true
		o.opts.Chat.Queued(t, ahead)
	}
}

// pressOn does with a prompt that waits what its conversation wants, and says what it did. What cannot be done
// leaves it waiting, which is no error.
func (o *Orchestrator) pressOn(ctx context.Context, t Turn) BusyMode {
	conv, err := o.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return BusyQueue
	}
	by := Press{Conversation: t.Prompt.Conversation, Person: t.Prompt.Person}
	mode := o.busyOf(conv)
	if !t.Prompt.Rights.ofChat() { // the chat's choice is not theirs: it could end or change a turn of another user
		mode = BusyQueue
	}
	switch mode {
	case BusySteer:
		err = o.Steer(ctx, t.ID, by)
	case BusyInterrupt:
		err = o.Interrupt(ctx, t.ID, by)
	}
	switch {
	case err == nil:
		return mode
	case errors.Is(err, ErrSteerUnknown):
		return BusySteer
	case !errors.Is(err, ErrCannotSteer) && !errors.Is(err, ErrNotWaiting):
		o.log.Error("have a prompt taken while a turn runs", "turn", t.ID, "mode", mode, "err", err)
	}
	return BusyQueue
}

func (o *Orchestrator) enqueue(ctx context.Context, t Turn, forget ...AgentEnv) (Receipt, error) {
	l, err := o.line(t.Prompt.Conversation)
	if err != nil {
		return Receipt{}, err
	}
	receipt, err := o.append(ctx, l, &t, forget...)
	if err == nil && receipt.Ahead > 0 && !receipt.Full {
		o.showQueued(l, t, receipt.Ahead)
	}
	return receipt, err
}

func (o *Orchestrator) append(ctx context.Context, l *line, t *Turn, forget ...AgentEnv) (Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ahead := l.ahead()
	if len(l.queue) >= o.opts.QueueMax {
		return Receipt{Ahead: ahead, Full: true}, nil
	}
	conv, err := o.opts.Store.Conversation(ctx, l.id)
	if err != nil {
		return Receipt{}, fmt.Errorf("load conversation: %w", err)
	}
	t.State, t.Queued = TurnQueued, t.Prompt.Arrived
	if t.Queued.IsZero() {
		t.Queued = o.now()
	}
	if t.ID == "" {
		t.ID = cli.TurnID(o.opts.NewID())
	}
	if t.Session == "" && t.Wants.Own == "" {
		t.Session = conv.Session
	}
	if err := o.opts.Store.EnqueueTurn(ctx, *t, forget...); err != nil {
		return Receipt{}, fmt.Errorf("enqueue turn: %w", err)
	}
	l.queue = append(l.queue, waiting{turn: *t})
	o.serve(l)
	return Receipt{Turn: t.ID, Ahead: ahead}, nil
}

// CancelQueued takes a turn out of the queue; false if it no longer waits. ErrNotListed for a member and a turn of
// another user.
func (o *Orchestrator) CancelQueued(ctx context.Context, id cli.TurnID, by Press) (bool, error) {
	l, err := o.line(by.Conversation)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.queue, isTurn(id))
	if i < 0 {
		return false, nil
	}
	if !by.mayEnd(l.queue[i].turn) {
		return false, ErrNotListed
	}
	if err := o.drop(ctx, l.queue[i]); err != nil {
		return false, err // it waits on
	}
	l.remove(id)
	return true, nil
}

// EditQueued changes the prompt of a queued turn that was made of message; false if none waits.
func (o *Orchestrator) EditQueued(ctx context.Context, id ConversationID, message int, text string) (bool, error) {
	l, err := o.line(id)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.queue {
		t := &l.queue[i].turn
		if t.Prompt.Message != message {
			continue
		}
		ok, err := o.opts.Store.UpdatePrompt(ctx, t.ID, text)
		if ok && err == nil {
			t.Prompt.Text = text
		}
		return ok, err
	}
	return false, nil
}

// drop records that w will not run and takes its card out of the queue.
func (o *Orchestrator) drop(ctx context.Context, w waiting) error {
	if _, err := o.opts.Store.CancelTurn(ctx, w.turn.ID); err != nil {
		return fmt.Errorf("cancel turn: %w", err)
	}
	o.dropped(w)
	return nil
}

// dropped takes the card of a turn that will not run out of the queue.
func (o *Orchestrator) dropped(w waiting) {
	if w.shown {
		w.turn.State = TurnCancelled
		o.opts.Chat.Unqueued(w.turn)
	}
}
