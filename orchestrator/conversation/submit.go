package conversation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// Submit implements bot.Desk. If the queue is full, it stores nothing. If a turn is running, the BusyMode of the
// conversation selects how to handle the prompt. Receipt.Did is the mode that was applied.
func (e *Engine) Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt,
	error) {
	return e.submit(ctx, orchestrator.Turn{Prompt: p, Wants: w})
}

// SubmitOnce implements attach.Desk.
func (e *Engine) SubmitOnce(ctx context.Context, id cli.TurnID, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	_, err := e.opts.Store.Turn(ctx, id)
	if err == nil || !errors.Is(err, orchestrator.ErrNoTurn) {
		return orchestrator.Receipt{Turn: id}, err
	}
	return e.submit(ctx, orchestrator.Turn{ID: id, Prompt: p})
}

func (e *Engine) submit(ctx context.Context, t orchestrator.Turn) (orchestrator.Receipt, error) {
	c, receipt, err := e.append(ctx, &t)
	if err != nil || receipt.Ahead == 0 || receipt.Full {
		return receipt, err
	}
	receipt.Did = c.applyBusyMode(context.WithoutCancel(ctx), t)
	if receipt.Did == orchestrator.BusyQueue {
		c.showQueued(t, receipt.Ahead)
	}
	return receipt, nil
}

// showQueued shows that a turn waits behind others, if the turn is still in the queue. It runs in the inbox, so that
// the chat shows the waiting turn before its card.
func (c *conversation) showQueued(t orchestrator.Turn, ahead int) {
	if ahead == 0 {
		return
	}
	c.do(func(c *conversation) {
		if i := c.find(t.ID); i >= 0 {
			c.queue[i].shown = true
			c.e.opts.Chat.Queued(t, ahead)
		}
	})
}

// applyBusyMode applies the conversation's BusyMode to a waiting prompt, and returns the mode. If that fails, it leaves
// the prompt in the queue and returns BusyQueue.
func (c *conversation) applyBusyMode(ctx context.Context, t orchestrator.Turn) orchestrator.BusyMode {
	e := c.e
	if t.Prompt.PartOf != 0 {
		joined, err := c.join(ctx, t)
		if err != nil {
			e.log.Error("merge a message into a waiting prompt", "turn", t.ID, "err", err)
		}
		if joined {
			return orchestrator.BusySteer
		}
	}
	conv, err := e.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return orchestrator.BusyQueue
	}
	var running orchestrator.Turn
	if r := c.active.first(); r != nil {
		running = r.turn
	}
	mode := e.busyOf(conv).During(running, t.Prompt, conv.Session)
	by := orchestrator.Press{Conversation: t.Prompt.Conversation, Person: t.Prompt.Person, Role: orchestrator.RoleUser}
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
		e.log.Error("apply the busy mode to a prompt", "turn", t.ID, "mode", mode, "err", err)
	}
	return orchestrator.BusyQueue
}

func (e *Engine) enqueue(ctx context.Context, t orchestrator.Turn,
	forget ...orchestrator.AgentEnv) (orchestrator.Receipt, error) {
	c, receipt, err := e.append(ctx, &t, forget...)
	if err == nil {
		c.showQueued(t, receipt.Ahead)
	}
	return receipt, err
}

// append appends a turn to the queue of its conversation, and returns this conversation.
func (e *Engine) append(ctx context.Context, t *orchestrator.Turn,
	forget ...orchestrator.AgentEnv) (in *conversation, receipt orchestrator.Receipt, err error) {
	err = e.do(t.Prompt.Conversation, func(c *conversation) error {
		in = c
		receipt, err = c.append(ctx, t, forget...)
		return err
	})
	return in, receipt, err
}

// append completes a new turn, stores it, and adds it to the end of the queue. It runs in the inbox.
func (c *conversation) append(ctx context.Context, t *orchestrator.Turn,
	forget ...orchestrator.AgentEnv) (receipt orchestrator.Receipt, err error) {
	receipt.Ahead = c.ahead()
	if receipt.Full = c.full(); receipt.Full {
		return receipt, nil
	}
	t.Prompt.Conversation, t.Wants.Card.Quote = c.id(), receipt.Ahead > 0
	if err = c.e.store(ctx, t, forget...); err == nil {
		receipt.Turn = t.ID
		c.queue = append(c.queue, waiting{turn: *t})
	}
	return receipt, err
}

func (c *conversation) full() bool { return len(c.queue) >= c.e.turns().QueueMax }

// store completes a new turn and stores it as queued.
func (e *Engine) store(ctx context.Context, t *orchestrator.Turn, forget ...orchestrator.AgentEnv) error {
	conv, err := e.load(ctx, t.Prompt.Conversation)
	if err != nil {
		return err
	}
	if conv.Session == "" { // create the conversation's folder now, so that its first turn need not wait for the disk
		e.spawn(func() { e.opts.Places.MoreDirs(conv.ID, e.log) })
	}
	t.State, t.Queued = orchestrator.TurnQueued, t.Prompt.Arrived
	if t.Queued.IsZero() {
		t.Queued = e.now()
	}
	if t.ID == "" {
		t.ID = cli.TurnID(e.opts.NewID())
	}
	t.Wants.Card.Think = conv.Settings.Think
	if t.Wants.Card.Display, err = e.displayOf(ctx, conv); err != nil {
		return err
	}
	if t.Session == "" && t.Wants.Own == "" {
		t.Session = conv.Session
	}
	if err := e.opts.Store.EnqueueTurn(ctx, *t, forget...); err != nil {
		return fmt.Errorf("enqueue turn: %w", err)
	}
	return nil
}

// CancelQueued implements bot.Desk.
func (e *Engine) CancelQueued(_ context.Context, id cli.TurnID, by orchestrator.Press) (cancelled bool, err error) {
	err = e.do(by.Conversation, func(c *conversation) error {
		i := c.find(id)
		if i < 0 {
			return nil
		}
		if !by.MayEnd(c.queue[i].turn) {
			return orchestrator.ErrNotAllowed
		}
		c.drop(i)
		cancelled = true
		return nil
	})
	return cancelled, err
}

// EditQueued implements bot.Desk.
func (e *Engine) EditQueued(ctx context.Context, id orchestrator.ConversationID, message int,
	text string) (edited bool, err error) {
	err = e.do(id, func(c *conversation) error {
		i := c.ofMessage(message)
		if i < 0 || c.queue[i].turn.Prompt.Text == text {
			return nil
		}
		edited, err = c.updatePrompt(ctx, i, text, c.queue[i].turn.Prompt.Attachments)
		return err
	})
	return edited, err
}

// ofMessage returns the index of the waiting turn with the prompt from a message, or -1. It searches from the end of
// the queue: compactFirst queues two turns for the same message, a compaction and then the turn with the prompt.
func (c *conversation) ofMessage(message int) int {
	for i, w := range slices.Backward(c.queue) {
		if w.turn.Prompt.Message == message {
			return i
		}
	}
	return -1
}

// updatePrompt changes the prompt of a waiting turn. i is the index of this turn in the queue. updatePrompt returns
// false if the turn no longer waits.
func (c *conversation) updatePrompt(ctx context.Context, i int, text string,
	files []orchestrator.Attachment) (bool, error) {
	t := c.queue[i].turn
	t.Prompt.Text, t.Prompt.Attachments, t.Wants = text, files, t.Wants.AsPrompt()
	ok, err := c.e.opts.Store.UpdatePrompt(ctx, t)
	if ok && err == nil {
		c.queue[i].turn = t
	}
	return ok, err
}

// cancelRemoved cancels a turn that was removed from the queue: it records that the turn will not run, and removes the
// turn's message from the chat. If the write fails, cancelRemoved retries the write in the background. If ductor ends
// before a write succeeds, the next process may run the turn.
func (e *Engine) cancelRemoved(w waiting) {
	log := e.log.With("turn", w.turn.ID)
	if _, err := e.retrier().Record(context.WithoutCancel(e.life), log, func(ctx context.Context) error {
		_, err := e.opts.Store.CancelTurn(ctx, w.turn.ID)
		return err
	}); err != nil {
		log.Error("record a cancelled turn", "err", err)
	}
	w.turn.State = orchestrator.TurnCancelled
	e.unqueued(w)
}

// unqueued removes the message that shows a turn as waiting. If there is no such message and the turn was cancelled,
// unqueued notifies the terminals instead, because they may show the turn as waiting.
func (e *Engine) unqueued(w waiting) {
	switch v := e.opts.Viewers; {
	case w.shown:
		e.opts.Chat.Unqueued(w.turn)
	case v != nil && w.turn.State == orchestrator.TurnCancelled && !w.turn.IsQuiet():
		v.Ended(w.turn)
	}
}

// SubmitOrder adds a turn to the end of a conversation's queue. It does not affect the running turn. When it returns,
// the turn is stored durably. If a turn with this ID exists, SubmitOrder changes nothing and returns nil.
//
// It stores nothing and returns an error in these cases:
//   - ErrQueueFull: the queue is full
//   - ErrOutsideRoot, ErrNotADir or ErrReplacedDir: the directory is invalid
//   - ErrBadChoice: Wants.Sandbox is unknown
//
// Whether the sandbox is available is checked later, when the turn runs.
func (e *Engine) SubmitOrder(ctx context.Context, order orchestrator.Order) error {
	if e.opts.Orders == nil {
		return orchestrator.ErrNoOrders
	}
	_, err := e.opts.Store.Turn(ctx, order.Turn)
	if err == nil || !errors.Is(err, orchestrator.ErrNoTurn) {
		return err
	}
	w := order.Wants
	if !slices.Contains([]string{"", orchestrator.SandboxDocker, orchestrator.SandboxOff}, w.Sandbox) {
		return fmt.Errorf("sandbox %q: %w", w.Sandbox, orchestrator.ErrBadChoice)
	}
	if w.Dir != "" {
		if w.Own == "" || !filepath.IsAbs(w.Dir) {
			return fmt.Errorf("%s: %w", w.Dir, orchestrator.ErrNotADir)
		}
		if w.Dir, err = e.opts.Places.Chosen(w.Dir); err != nil {
			return err
		}
	}
	again, prompt, err := e.later().Restore(ctx, order)
	if err != nil {
		return err
	}
	receipt, err := e.enqueue(ctx, orchestrator.Turn{ID: order.Turn, Again: again, Prompt: prompt, Wants: w})
	if err == nil && receipt.Full {
		err = orchestrator.ErrQueueFull
	}
	return err
}

// ownSession returns the session with the name Wants.Own. It creates a session if there is none, if the session has
// ended by IdleReset or DailyReset, or if the turn needs another directory.
func (e *Engine) ownSession(ctx context.Context, conv orchestrator.Conversation,
	t orchestrator.Turn) (orchestrator.Session, error) {
	id, err := e.opts.Orders.OwnSession(ctx, conv.ID, t.Wants.Own)
	if err != nil {
		return orchestrator.Session{}, fmt.Errorf("find session: %w", err)
	}
	s, ok, err := e.currentSession(ctx, id)
	if err != nil || ok && e.opts.Places.Real(s.Dir) == e.opts.Places.DirOf(conv) {
		return s, err
	}
	s = e.newSession(conv, t)
	if err := e.opts.Orders.CreateOwnSession(ctx, t.Wants.Own, s); err != nil {
		return orchestrator.Session{}, fmt.Errorf("create session: %w", err)
	}
	return s, nil
}
