package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// Submit puts a prompt at the end of its conversation's queue and starts it if nothing runs there. Its
// updates are marked handled in the same transaction. A full queue stores nothing and marks nothing.
//
// When a turn runs, the conversation's BusyMode says what becomes of it; Receipt.Did says what became.
func (e *Engine) Submit(ctx context.Context, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	l, err := e.line(p.Conversation)
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	t := orchestrator.Turn{Prompt: p}
	receipt, err := e.append(ctx, l, &t)
	if err != nil || receipt.Ahead == 0 || receipt.Full {
		return receipt, err
	}
	receipt.Did = e.pressOn(context.WithoutCancel(ctx), t)
	if receipt.Did == orchestrator.BusyQueue {
		e.showQueued(l, t, receipt.Ahead)
	}
	return receipt, nil
}

// showQueued shows that a turn waits, if it still does: what shows that it runs must not come before.
func (e *Engine) showQueued(l *line, t orchestrator.Turn, ahead int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.queue, isTurn(t.ID)); i >= 0 {
		l.queue[i].shown = true
		e.opts.Chat.Queued(t, ahead)
	}
}

// pressOn does with a prompt that waits what its conversation wants, and says what it did. What cannot be done
// leaves it waiting, which is no error.
func (e *Engine) pressOn(ctx context.Context, t orchestrator.Turn) orchestrator.BusyMode {
	conv, err := e.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return orchestrator.BusyQueue
	}
	by := orchestrator.Press{Conversation: t.Prompt.Conversation, Person: t.Prompt.Person}
	mode := e.busyOf(conv)
	if !t.Prompt.Rights.OfChat() { // the chat's choice is not theirs: it could end or change a turn of another user
		mode = orchestrator.BusyQueue
	}
	switch mode {
	case orchestrator.BusySteer:
		err = e.Steer(ctx, t.ID, by)
	case orchestrator.BusyInterrupt:
		err = e.Interrupt(ctx, t.ID, by)
	}
	switch {
	case err == nil:
		return mode
	case errors.Is(err, orchestrator.ErrSteerUnknown):
		return orchestrator.BusySteer
	case !errors.Is(err, orchestrator.ErrCannotSteer) && !errors.Is(err, orchestrator.ErrNotWaiting):
		e.log.Error("have a prompt taken while a turn runs", "turn", t.ID, "mode", mode, "err", err)
	}
	return orchestrator.BusyQueue
}

func (e *Engine) enqueue(ctx context.Context, t orchestrator.Turn, forget ...orchestrator.AgentEnv) (orchestrator.Receipt, error) {
	l, err := e.line(t.Prompt.Conversation)
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	receipt, err := e.append(ctx, l, &t, forget...)
	if err == nil && receipt.Ahead > 0 && !receipt.Full {
		e.showQueued(l, t, receipt.Ahead)
	}
	return receipt, err
}

func (e *Engine) append(ctx context.Context, l *line, t *orchestrator.Turn, forget ...orchestrator.AgentEnv) (orchestrator.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ahead := l.ahead()
	if len(l.queue) >= e.opts.QueueMax {
		return orchestrator.Receipt{Ahead: ahead, Full: true}, nil
	}
	conv, err := e.opts.Store.Conversation(ctx, l.id)
	if err != nil {
		return orchestrator.Receipt{}, fmt.Errorf("load conversation: %w", err)
	}
	t.State, t.Queued = orchestrator.TurnQueued, t.Prompt.Arrived
	if t.Queued.IsZero() {
		t.Queued = e.now()
	}
	if t.ID == "" {
		t.ID = cli.TurnID(e.opts.NewID())
	}
	if t.Session == "" && t.Wants.Own == "" {
		t.Session = conv.Session
	}
	if err := e.opts.Store.EnqueueTurn(ctx, *t, forget...); err != nil {
		return orchestrator.Receipt{}, fmt.Errorf("enqueue turn: %w", err)
	}
	l.queue = append(l.queue, waiting{turn: *t})
	e.serve(l)
	return orchestrator.Receipt{Turn: t.ID, Ahead: ahead}, nil
}

// CancelQueued takes a turn out of the queue; false if it no longer waits. ErrNotListed for a member and a turn of
// another user.
func (e *Engine) CancelQueued(ctx context.Context, id cli.TurnID, by orchestrator.Press) (bool, error) {
	l, err := e.line(by.Conversation)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.queue, isTurn(id))
	if i < 0 {
		return false, nil
	}
	if !by.MayEnd(l.queue[i].turn) {
		return false, orchestrator.ErrNotListed
	}
	if err := e.drop(ctx, l.queue[i]); err != nil {
		return false, err // it waits on
	}
	l.remove(id)
	return true, nil
}

// EditQueued changes the prompt of a queued turn that was made of message; false if none waits.
func (e *Engine) EditQueued(ctx context.Context, id orchestrator.ConversationID, message int, text string) (bool, error) {
	l, err := e.line(id)
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
		ok, err := e.opts.Store.UpdatePrompt(ctx, t.ID, text)
		if ok && err == nil {
			t.Prompt.Text = text
		}
		return ok, err
	}
	return false, nil
}

// drop records that w will not run and takes its card out of the queue.
func (e *Engine) drop(ctx context.Context, w waiting) error {
	if _, err := e.opts.Store.CancelTurn(ctx, w.turn.ID); err != nil {
		return fmt.Errorf("cancel turn: %w", err)
	}
	e.dropped(w)
	return nil
}

// dropped takes the card of a turn that will not run out of the queue.
func (e *Engine) dropped(w waiting) {
	if w.shown {
		w.turn.State = orchestrator.TurnCancelled
		e.opts.Chat.Unqueued(w.turn)
	}
}
