package conversation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/turn"
)

const steerWait = 15 * time.Second

// Steer implements bot.Desk. It adds the prompt of a waiting turn to the running turn.
//
// First it stores the state TurnSteered. Then it sends the prompt to the agent. Last it calls MarkSteered. If ductor
// crashes before the last step, the next process does not send the prompt again, but shows that the prompt may not have
// reached the agent. If the running turn ends before the last step, requeueUnread may put the prompt back into the
// queue.
func (e *Engine) Steer(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error {
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	var h handover
	c.do(func(c *conversation) { h, err = c.handOver(ctx, waiting) })
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, steerWait)
	defer cancel()
	err = e.opts.Gateway.Steer(call, h.into, h.req)
	switch {
	case err == nil:
		c.do(func(c *conversation) { err = c.steered(ctx, h) })
	case errors.Is(err, cli.ErrNoTurn) || errors.Is(err, errors.ErrUnsupported):
		c.do(func(c *conversation) { err = c.requeue(ctx, h) })
	default:
		e.log.Warn("it is unknown whether a message reached the agent", "turn", waiting, "err", err)
		err = orchestrator.ErrSteerUnknown
		if e.open() {
			defer e.wg.Done()
			c.redeliver(ctx, h.waiting.turn)
		}
	}
	return err
}

// handover describes a waiting turn whose prompt is being sent to the running turn.
type handover struct {
	waiting waiting
	into    cli.TurnID
	req     cli.Request
	// cleared is the value of conversation.cleared at the start of the handover. If that value has changed since, an
	// abort has emptied the queue.
	cleared int
}

func (c *conversation) handOver(ctx context.Context, id cli.TurnID) (handover, error) {
	r := c.active.first()
	if r == nil {
		return handover{}, orchestrator.ErrNotWaiting
	}
	// The agent of the running turn can take the message only if it already has the prompt of that turn.
	if r.req == nil || !r.promptSent.Load() || !r.turn.AcceptsMessages() {
		return handover{}, cmp.Or(c.promote(ctx, id), orchestrator.ErrCannotSteer)
	}
	i := c.find(id)
	if i < 0 || c.dropUnpermitted(i) {
		return handover{}, orchestrator.ErrNotWaiting
	}
	if !c.queue[i].turn.MayJoin(r.turn.Prompt.Message) {
		return handover{}, orchestrator.ErrCannotSteer
	}
	h := handover{into: r.turn.ID, req: *r.req, cleared: c.cleared}
	ok, err := c.e.opts.Store.SteerTurn(ctx, id, h.into, c.e.now())
	if err != nil || !ok {
		return handover{}, cmp.Or(err, orchestrator.ErrNotWaiting)
	}
	h.waiting = c.remove(i)
	t := &h.waiting.turn
	t.State, t.Entry.Into, t.Agent, t.Model, t.Sandbox, t.Session = orchestrator.TurnSteered, h.into, r.turn.Agent,
		r.turn.Model, r.turn.Sandbox, r.turn.Session
	h.req.Turn = id
	h.req.Prompt, h.req.Images = turn.PromptText(t.Prompt)
	h.req.Files = orchestrator.Paths(t.Prompt.Attachments)
	return h, nil
}

// steered records that the agent has the prompt. If the prompt is already back in the queue, it returns ErrCannotSteer.
func (c *conversation) steered(ctx context.Context, h handover) error {
	ok, err := c.e.opts.Store.MarkSteered(ctx, h.waiting.turn.ID, h.into)
	switch {
	case err != nil: // only log the error, because the message has already reached the agent
		c.e.log.Error("record a steered turn", "turn", h.waiting.turn.ID, "err", err)
	case !ok:
		return orchestrator.ErrCannotSteer
	}
	c.e.unqueued(h.waiting)
	return nil
}

// requeue moves a turn back to the front of the queue. If an abort has emptied the queue since the start of the
// handover, requeue cancels the turn instead.
func (c *conversation) requeue(ctx context.Context, h handover) error {
	// If an abort has emptied the queue, do not store the turn as queued: after a crash, the next process would run it.
	if c.cleared != h.cleared {
		c.e.cancelRemoved(h.waiting)
		return orchestrator.ErrNotWaiting
	}
	err := c.returnToQueue(ctx, []waiting{h.waiting}, "")
	if c.find(h.waiting.turn.ID) < 0 {
		return cmp.Or(err, orchestrator.ErrNotWaiting)
	}
	return orchestrator.ErrCannotSteer
}

// returnToQueue puts steered turns back into the queue, right behind the turn with the ID behind. If that turn no
// longer waits, the steered turns go to the front.
//
// If a write to the store fails, for example because the disk is full, returnToQueue returns the error and repeats the
// write in the background. The steered turns get into the queue after the successful write. If an abort has emptied the
// queue in the meantime, ductor cancels the steered turns instead.
func (c *conversation) returnToQueue(ctx context.Context, steered []waiting, behind cli.TurnID) error {
	left, back, last, cleared := steered, []waiting(nil), behind, c.cleared
	stored, err := c.e.retrier().Record(ctx, c.e.log, func(ctx context.Context) error {
		for ; len(left) > 0; left = left[1:] {
			id := left[0].turn.ID
			ok, err := c.e.opts.Store.UnsteerTurn(ctx, id, last)
			if err != nil {
				return err
			}
			if ok {
				back, last = append(back, left[0]), id
			}
		}
		return nil
	})
	if err == nil {
		c.insertSteered(back, behind, 0)
		return nil
	}
	c.e.spawn(func() {
		if !<-stored {
			return
		}
		c.do(func(c *conversation) {
			if c.cleared == cleared {
				c.insertSteered(back, behind, len(c.active.turns()))
				return
			}
			for _, w := range back {
				c.e.cancelRemoved(w)
			}
		})
	})
	return err
}

// insertSteered inserts steered turns into the queue, right behind the turn with the ID behind, or at the front if that
// turn does not wait. The running turn did not get their prompts. ahead is the number of running turns that must end
// first.
func (c *conversation) insertSteered(back []waiting, behind cli.TurnID, ahead int) {
	at := 1 + c.find(behind)
	for i, w := range back {
		w.turn = w.turn.Requeued(c.id())
		if n := ahead + at + i; n > 0 { // if n is 0, the turn starts at once, so the chat need not show it as waiting
			w.shown = true
			c.e.opts.Chat.Queued(w.turn, n)
		}
		c.queue = slices.Insert(c.queue, at+i, w)
	}
}

// Interrupt implements bot.Desk.
func (e *Engine) Interrupt(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error {
	return e.do(by.Conversation, func(c *conversation) error {
		if err := c.promote(ctx, waiting); err != nil {
			return err
		}
		return c.replaceRunning(ctx)
	})
}

// promote moves a turn to the front of the queue, or returns ErrNotWaiting.
func (c *conversation) promote(ctx context.Context, id cli.TurnID) error {
	i := c.find(id)
	if i < 0 || c.dropUnpermitted(i) {
		return orchestrator.ErrNotWaiting
	}
	ok, err := c.e.opts.Store.PromoteTurn(ctx, id)
	if err != nil || !ok {
		return cmp.Or(err, orchestrator.ErrNotWaiting)
	}
	c.queue = slices.Insert(c.queue, 0, c.remove(i))
	return nil
}

// replaceRunning aborts the running turns to make room for another turn. It does not change the queue.
func (c *conversation) replaceRunning(ctx context.Context) error {
	var all []cli.TurnID
	for _, r := range c.active.turns() {
		r.cancel(cli.ErrReplaced)
		all = append(all, r.turn.ID)
	}
	if all == nil {
		return nil
	}
	return c.e.opts.Store.AbortTurns(ctx, all, nil, orchestrator.Handled{})
}

// runsAgain is the cause of a cancelled turn context if a user stopped the turn to run its prompt again.
type runsAgain struct {
	by orchestrator.Press
	at time.Time // when the prompt runs again, by a job; zero if it is in the queue already
}

func (*runsAgain) Error() string { return cli.ErrAborted.Error() }
func (*runsAgain) Unwrap() error { return cli.ErrAborted }

// handleUnread handles messages that ductor sent to the running turn, but that its agent did not read. What happens to
// them depends on why the turn ended:
//   - If a user aborted the turn, the messages are dropped.
//   - If a user chose that a job runs the prompt later, handleUnread creates a job for each message, which runs the
//     message right after the prompt. But if a user has deleted the job of the prompt in the meantime, the messages are
//     dropped.
//   - Otherwise the messages go back into the queue.
func (r *runningTurn) handleUnread(result cli.Result) {
	unread := result.Steered.Unread
	var again *runsAgain
	repeats := errors.As(context.Cause(r.ctx), &again)
	if len(unread) == 0 || result.Aborted && !cli.Replaced(r.ctx) && !repeats {
		return
	}
	if repeats && !again.at.IsZero() {
		if exists, err := r.e.later().Repeats(r.record, r.turn); err == nil && !exists {
			return
		}
		unread = slices.DeleteFunc(slices.Clone(unread), func(id cli.TurnID) bool { return r.postpone(id, again) })
	}
	r.c.do(func(c *conversation) { c.requeueUnread(r.record, r.c.active.running.Load(), unread) })
}

// postpone creates a job for an unread message. The job runs the message right after the prompt of the turn, which
// another job runs. postpone returns false if it could not create the job.
func (r *runningTurn) postpone(id cli.TurnID, again *runsAgain) bool {
	t, err := r.e.opts.Store.Turn(r.record, id)
	if err == nil {
		_, err = r.c.scheduleLaterFor(r.record, t, again.at, again.by)
	}
	if err != nil {
		r.log().Warn("postpone a message together with its turn", "message", id, "err", err)
	}
	return err == nil
}

// requeueUnread puts the unread messages of an ended turn back into the queue. If a queued turn repeats the prompt of
// the ended turn, the messages go behind the queued turn. If a queued message interrupted the ended turn, they go
// behind that message. Otherwise they go to the front of the queue.
func (c *conversation) requeueUnread(ctx context.Context, r *running, unread []cli.TurnID) {
	if r.cleared != c.cleared {
		return
	}
	before := slices.IndexFunc(c.queue, func(w waiting) bool { return w.turn.Again == r.turn.ID })
	if before < 0 && cli.Replaced(r.ctx) && len(c.queue) > 0 {
		before = 0
	}
	var behind cli.TurnID
	if before >= 0 {
		behind = c.queue[before].turn.ID
	}
	var back []waiting
	for _, id := range unread {
		t, err := c.e.opts.Store.Turn(ctx, id)
		if err != nil {
			c.e.log.Error("load an unread message", "turn", id, "err", err)
			continue
		}
		// The chat may still show a message about this turn. ductor deletes the message later only if shown is true.
		back = append(back, waiting{turn: t, shown: true})
	}
	if err := c.returnToQueue(ctx, back, behind); err != nil {
		c.e.log.Error("requeue unread messages", "turn", r.turn.ID, "err", err)
	}
}

// Restart implements bot.Desk.
func (e *Engine) Restart(ctx context.Context, id cli.TurnID, text string,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	err = e.do(by.Conversation, func(c *conversation) error {
		receipt, err = c.restart(ctx, id, text, by)
		return err
	})
	return receipt, err
}

func (c *conversation) restart(ctx context.Context, id cli.TurnID, text string,
	by orchestrator.Press) (orchestrator.Receipt, error) {
	e, r := c.e, c.active.turn(id)
	if r == nil {
		return orchestrator.Receipt{}, e.notRunningError(ctx, id, by)
	}
	t := orchestrator.Turn{
		ID: cli.TurnID(e.opts.NewID()), Again: id, Session: r.turn.Session, State: orchestrator.TurnQueued,
		Queued: e.now(),
		Prompt: r.turn.Prompt, Wants: r.turn.Wants.AsPrompt(),
	}
	t.Prompt.Conversation, t.Prompt.Text, t.Prompt.Person, t.Prompt.Updates = c.id(), text, by.Person, by.Updates
	if err := e.opts.Store.EnqueueTurn(ctx, t); err != nil {
		return orchestrator.Receipt{}, err
	}
	c.queue = slices.Insert(c.queue, 0, waiting{turn: t})
	if _, err := e.opts.Store.PromoteTurn(ctx, t.ID); err != nil {
		return orchestrator.Receipt{}, err
	}
	return orchestrator.Receipt{Turn: t.ID, Ahead: 1, Did: orchestrator.BusyInterrupt}, c.replaceRunning(ctx)
}

// notRunningError explains to a user why a turn cannot be aborted or changed: it is not running.
func (e *Engine) notRunningError(ctx context.Context, id cli.TurnID, by orchestrator.Press) error {
	t, err := e.opts.Store.Turn(ctx, id)
	switch {
	case err != nil:
		return err
	case t.Prompt.Conversation != by.Conversation:
		return orchestrator.ErrElsewhere
	}
	return orchestrator.ErrNoTurn
}
